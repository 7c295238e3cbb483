// A worker's link to its sidecar: what the sidecar knows of the worker, what is sent and what
// comes, and the way into a view, which leads through the sidecar. A worker without a sidecar has a
// link that never starts, and says nothing.
//
// Thread rule: Start() once, before all but reports(); then any thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "collectives/elastic/engine_reports.h"
#include "collectives/elastic/entry.h"
#include "collectives/elastic/options.h"
#include "collectives/elastic/ping_facts.h"
#include "collectives/elastic/rest_status.h"
#include "collectives/elastic/sidecar_frames.h"
#include "collectives/elastic/sidecar_orders.h"
#include "collectives/elastic/worker_registration.h"
#include "collectives/engine/engine.h"
#include "collectives/sidecar_client/sidecar_client.h"

namespace ringmaster::elastic {

class SidecarLink {
 public:
  using Clock = std::chrono::steady_clock;

  SidecarLink(const WorkerOptions& options, engine::StateRegistry* state, PingFacts* facts);

  // Passes on what the engine says to the sidecar.
  engine::EngineListener* reports() { return &reports_; }
  void Attach(engine::Engine* engine);
  // Waits until the sidecar has said which role this worker has, and a standby until it is
  // promoted, for which there is no limit. RM_ERR_UNAVAILABLE: the limit has passed; without one,
  // there was no connection to a sidecar when WorkerOptions::patience was over.
  Status Start(Endpoint* endpoint, std::optional<Clock::time_point> limit, Role* role);
  // Says goodbye and closes the connection: before the engine ends.
  void Close();

  // For a bootstrapping worker: waits for the beginning of the job. RM_ERR_TIMEOUT before the
  // deadline: the job has begun without this worker, which is a joiner now.
  Status AwaitBegin(Clock::time_point deadline) { return entry_.AwaitBegin(engine_, deadline); }
  // For a joiner: asks to be let into a view, and waits for it.
  Status AwaitView(Clock::time_point deadline) { return entry_.Await(engine_, deadline); }
  void Entered() { registration_.Entered(); }
  bool joins() const { return registration_.role() == Role::kJoining; }
  // Waits until the sidecar knows what it was told of a shutdown, of the end of a rest or of the
  // end of the job: a pod whose worker ends before its sidecar knows counts as failed.
  void AwaitHeard(Clock::time_point deadline);
  // The sidecar lets workers begin again after a shutdown.
  bool may_rest() const { return rest_.may_rest(); }
  // The sidecar was not heard for so long that nobody can tell whether it still counts on this
  // worker.
  bool fenced() const { return entry_.fenced(); }
  // What the next ping tells is news that can't wait. After Start().
  void PingNow() { client_->PingNow(); }
  // The script begins again.
  void Wakes();
  // This worker, which rests, will not begin again.
  void Finish();

 private:
  Status AwaitRole(std::optional<Clock::time_point> limit, Role* role);

  const std::string socket_;
  const std::chrono::milliseconds patience_;
  timeline::Timeline* const timeline_;  // null: there is none
  WorkerRegistration registration_;
  RestStatus rest_;
  SidecarFrames frames_;
  Entry entry_;
  EngineReports reports_;
  SidecarOrders orders_;
  engine::Engine* engine_ = nullptr;
  std::unique_ptr<sidecar_client::SidecarClient> client_;
};

}  // namespace ringmaster::elastic
