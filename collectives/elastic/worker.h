// One training process in its job: ties the engine to the sidecar and to the user's calls.
//
// Thread rule: user calls from any thread; On* of the engine's listener on the engine's thread, of
// the sidecar's handler on the sidecar client's.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/elastic/options.h"
#include "collectives/elastic/registration.h"
#include "collectives/engine/engine.h"
#include "collectives/sidecar_client/sidecar_client.h"
#include "common/job/stall.h"
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
  // What every collective begins with: a joiner enters.
  Status EnsureEntered();
  Status Submit(const std::shared_ptr<engine::Operation>& operation) {
    return Submit({&operation, 1});
  }
  // All of them at once, or none.
  Status Submit(std::span<const std::shared_ptr<engine::Operation>> operations);
  Status StepEnd(rm_step_info* info);
  Status Shutdown(Clock::time_point deadline);
  // There are others, or could be: an end of the job is agreed with them, and the sidecar hears of
  // it.
  bool AgreesWithOthers() const { return sidecar_ != nullptr && engine_->entered(); }

  bool joining() const;
  engine::Membership membership() const { return engine_->membership(); }
  std::string WorkerAt(int rank) const { return engine_->WorkerAt(rank); }
  std::vector<std::string> Workers() const { return engine_->workers(); }  // by rank
  bool MembersOf(int process_set, std::vector<std::string>* members,
                 std::vector<int>* ranks) const {
    return engine_->MembersOf(process_set, members, ranks);
  }
  // Of a joiner: the number of the next process set that its script adds.
  int CountSet() { return ++counted_sets_; }
  void Report(const std::string& name, double value);
  // RM_ERR_INVALID: there is one already, or there can be no such file.
  Status StartTimeline(const std::string& path);
  std::string LastRebuild() const;

 private:
  Worker(const WorkerOptions& options, engine::StateRegistry* state);
  Status StartAlone();
  Status StartWithSidecar(Clock::time_point deadline);
  void RequestEntry();
  void AwaitFinishHeard(Clock::time_point deadline);
  void SendEnter();
  void Tell(const Registration::Trouble& trouble);
  void SendTrouble(const Registration::Trouble& trouble);
  // It would be a joiner with nothing to load.
  bool stateless() const;
  Status AwaitEntered(Clock::time_point deadline);
  // The worker is in a view. Its first step counts changes from this one.
  void Entered();

  // engine::EngineListener
  void OnStopped(uint64_t epoch) override;
  void OnInstalled(uint64_t epoch, double connect_seconds) override;
  void OnBoundary(uint64_t epoch, uint64_t step) override;
  void OnSuspect(uint64_t epoch, int rank, const std::string& why) override;
  void OnBroken(uint64_t epoch, int rank, const std::string& why) override;
  void OnRebuilt(const engine::RebuildTimes& times, uint64_t step, uint64_t resumed) override;
  void OnFinished(uint64_t epoch) override;
  void OnStalls(const std::vector<job::Stall>& stalls, bool came) override;

  // sidecar_client::SidecarHandler
  nlohmann::json Hello() override;
  nlohmann::json PingFields() override;
  std::vector<job::Stall> StallsNow();
  void OnFrame(const nlohmann::json& frame) override;
  void OnFenced(const std::string& why) override;
  void OnWelcome(const nlohmann::json& frame);
  // False: it is none, and the worker has failed.
  bool TakeRingKey(const nlohmann::json& frame);
  void OnPromoted(const nlohmann::json& frame);
  void OnView(const nlohmann::json& frame);

  const WorkerOptions options_;
  engine::StateRegistry* const state_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<engine::CommunicatorFactory> communicators_;

  Registration registration_;

  std::atomic<int> counted_sets_{0};
  std::once_flag timeline_begun_;
  // Fenced, and the sidecar has said nothing of a view since.
  std::atomic<bool> fenced_{false};

  sync::Mutex mu_;
  std::map<std::string, double> values_ GUARDED_BY(mu_);
  uint64_t last_epoch_ GUARDED_BY(mu_) = 0;  // of the previous step_end
  int last_size_ GUARDED_BY(mu_) = 0;        // of the previous step_end
  std::vector<job::Stall> stalls_ GUARDED_BY(mu_);
  Clock::time_point stalls_at_ GUARDED_BY(mu_);  // when `stalls_` was so

  std::unique_ptr<engine::Engine> engine_;  // constant after Start
  std::unique_ptr<sidecar_client::SidecarClient>
      sidecar_;  // constant after Start; null: alone. Ends before the engine.
};

}  // namespace ringmaster::elastic
