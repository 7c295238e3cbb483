// A worker's link to its sidecar: what the sidecar knows of the worker, what goes to it and what
// comes from it, and the way into a view, which leads through it. A worker that has no sidecar has
// one that never starts, and says nothing.
//
// Thread rule: Start() once, before all but reports(); then any thread.
#pragma once

#include <chrono>
#include <memory>

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

  // What the engine says goes to the sidecar.
  engine::EngineListener* reports() { return &reports_; }
  void Attach(engine::Engine* engine);
  // Until the sidecar has said what this worker is. RM_ERR_UNAVAILABLE: there is no sidecar there.
  Status Start(Endpoint* endpoint, Clock::time_point deadline, Role* role);
  // Nothing comes or goes any more. Before the engine ends.
  void Close();

  // Of a bootstrapping worker. RM_ERR_TIMEOUT before the deadline: the job has begun without this
  // worker, which is a joiner now.
  Status AwaitBegin(Clock::time_point deadline) { return entry_.AwaitBegin(engine_, deadline); }
  // A joiner's way into a view.
  Status AwaitView(Clock::time_point deadline) { return entry_.Await(engine_, deadline); }
  void Entered() { registration_.Entered(); }
  bool joins() const { return registration_.role() == Role::kJoining; }
  // Until the sidecar knows what it was told of a shutdown, of its end or of the job's: a pod whose
  // worker ends before its sidecar knows counts as failed.
  void AwaitHeard(Clock::time_point deadline);
  // The sidecar lets workers begin again after a shutdown.
  bool may_rest() const { return rest_.may_rest(); }
  // The sidecar was not heard for so long that nobody can tell what it thinks of this worker.
  bool fenced() const { return entry_.fenced(); }
  void Wakes();
  // This worker rests and never begins again.
  void Finish();

 private:
  const std::string socket_;
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
