// The sidecar without its sockets: it puts the parts together that take what happens
// (WorkerMonitor, PeerMonitor, OperatorOrders), decide (MembershipLoop, Departure, LostState) and
// report (PodReporter, OperatorReports, TrainingHistory), carries out what the membership decides,
// and keeps the time.
//
// Thread rule: the sidecar's loop only. Outputs may be called at any time inside a call and must
// not call back in.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/membership/member.h"
#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/history_handover.h"
#include "sidecar/app/lost_state.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_orders.h"
#include "sidecar/app/operator_reports.h"
#include "sidecar/app/options.h"
#include "sidecar/app/peer_monitor.h"
#include "sidecar/app/pod_reporter.h"
#include "sidecar/app/training_history.h"
#include "sidecar/app/worker_monitor.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app {

class Agent {
 public:
  Agent(const SidecarOptions& options, membership::Pod self, membership::PersistentState state,
        AgentOutputs outputs, health::Metrics* metrics);

  void Start();
  // To be called every quarter of a second, and at NextWake().
  void Tick();
  SteadyTime NextWake() const;

  // Take what comes from the worker link, from other sidecars, and from the operator.
  WorkerMonitor& workers() { return workers_; }
  PeerMonitor& peers() { return peers_; }
  OperatorOrders& orders() { return orders_; }
  // Takes what other sidecars ask and tell of the time before.
  void OnHistory(const std::string& body, const std::string& from) {
    handover_.OnMessage(body, from, outputs_.clock.now());
  }

  // SIGTERM: drain, then end.
  void Terminate() { departure_.Terminate(); }
  // Nothing is left to do here; the exit code is 0 unless the state could not be stored.
  bool Done() const { return membership_.done(); }
  int exit_code() const { return membership_.exit_code(); }

  // All workers are in a view that trains, and none of their GPUs fails.
  bool Ready() const;
  // With so many of the newest changes of the job's members.
  nlohmann::json Status(std::size_t rebuilds = health::RebuildLog::kKeep) const;
  nlohmann::json History() const;
  // Asks the workers for their newest events. To be called until it gives the document, which it
  // does in bounded time; null: too many ask.
  std::function<std::optional<std::string>()> Timeline(const TimelineAsk& ask);

 private:
  MembershipHooks Hooks();
  WorkerTableCallbacks TableCallbacks();
  void Run(const membership::Action& action);
  void Install(const ViewPtr& view);
  void AfterEvents();

  const SidecarOptions options_;
  const membership::Pod self_;
  const AgentOutputs outputs_;
  TrainingHistory history_;
  HistoryHandover handover_;
  OperatorReports reports_;
  MembershipLoop membership_;
  WorkerTable table_;
  Departure departure_;
  PeerMonitor peers_;
  WorkerMonitor workers_;
  OperatorOrders orders_;
  PodReporter reporter_;
  LostState lost_state_;
};

}  // namespace ringmaster::app
