// One training process in its job: ties the engine to the sidecar and to the user's calls.
//
// Thread rule: user calls from any thread; On* of the engine's listener on the engine's thread, of
// the sidecar's handler on the sidecar client's.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "collectives/elastic/options.h"
#include "collectives/elastic/registration.h"
#include "collectives/engine/engine.h"
#include "collectives/sidecar_client/sidecar_client.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

class Worker : public engine::EngineListener, public sidecar_client::SidecarHandler {
 public:
  using Clock = std::chrono::steady_clock;

  // A bootstrapping worker: returns when it is in the first view. A joiner: when the sidecar has
  // said so. A standby: when it is promoted.
  static Status Start(const WorkerOptions& options, engine::StateRegistry* state,
                      Clock::time_point deadline, std::unique_ptr<Worker>* out);
  ~Worker() override;

  // A joiner's way into a view; a no-op for those in one.
  Status Enter(Clock::time_point deadline);
  Status Submit(const std::shared_ptr<engine::Operation>& operation);
  Status StepEnd(rm_step_info* info);
  Status Shutdown(Clock::time_point deadline);

  bool joining() const;
  engine::Membership membership() const { return engine_->membership(); }
  void Report(const std::string& name, double value);
  std::string LastRebuild() const;

 private:
  Worker(const WorkerOptions& options, engine::StateRegistry* state);
  Status StartAlone();
  Status StartWithSidecar(Clock::time_point deadline);
  void SendEnter();
  // The first step of a worker counts its changes from the view that it entered in.
  void RememberView();

  // engine::EngineListener
  void OnStopped(uint64_t epoch) override;
  void OnInstalled(uint64_t epoch, double connect_seconds) override;
  void OnBoundary(uint64_t epoch, uint64_t step) override;
  void OnSuspect(uint64_t epoch, int rank, const std::string& why) override;
  void OnRebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) override;
  void OnFinished(uint64_t epoch) override;
  void OnReadyToEnter() override;

  // sidecar_client::SidecarHandler
  nlohmann::json Hello() override;
  nlohmann::json PingFields() override;
  void OnFrame(const nlohmann::json& frame) override;
  void OnFenced(const std::string& why) override;
  void OnWelcome(const nlohmann::json& frame);
  void OnPromoted(const nlohmann::json& frame);
  void OnView(const nlohmann::json& frame);

  const WorkerOptions options_;
  engine::StateRegistry* const state_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<engine::CommunicatorFactory> communicators_;

  Registration registration_;

  sync::Mutex mu_;
  std::map<std::string, double> values_ GUARDED_BY(mu_);
  uint64_t last_epoch_ GUARDED_BY(mu_) = 0;  // of the previous step_end
  int last_size_ GUARDED_BY(mu_) = 0;        // of the previous step_end

  std::unique_ptr<engine::Engine> engine_;  // constant after Start
  std::unique_ptr<sidecar_client::SidecarClient>
      sidecar_;  // constant after Start; null: alone. Ends before the engine.
};

}  // namespace ringmaster::elastic
