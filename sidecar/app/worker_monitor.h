// The pod's own workers: takes what the worker link brings, and tells the membership, the operator
// and the metrics what follows.
//
// Thread rule: the sidecar's loop only.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/job/rebuild.h"
#include "common/job/worker_exit.h"
#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_reports.h"
#include "sidecar/app/peer_monitor.h"
#include "sidecar/app/training_history.h"
#include "sidecar/app/worker_census.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app {

// The parts that it talks to; they outlive it.
struct WorkerMonitorPeers {
  MembershipLoop* membership;
  WorkerTable* table;
  Departure* departure;
  PeerMonitor* peers;
  OperatorReports* reports;
  TrainingHistory* history;
  health::Metrics* metrics;
};

class WorkerMonitor {
 public:
  WorkerMonitor(std::string pod_uid, AgentClock clock, WorkerMonitorPeers parts);

  // From the worker link.
  void OnHello(uint64_t connection, bool launcher, const nlohmann::json& hello, int peer_pid);
  void OnFrame(uint64_t connection, const nlohmann::json& frame);
  void OnClosed(uint64_t connection);

  // From the table of workers.
  void OnChanged();
  void OnStopped(Epoch epoch);
  void OnBoundary(Epoch epoch);
  void OnRebuilt(const job::Rebuild& figures);
  void OnFinished(Epoch epoch);
  void OnExited(const job::WorkerExit& exit);

  // The sidecar starts, with the view of its state file or without.
  void Start(bool with_view);
  // A pod without a launcher is known to have none after a while.
  void CheckKnown();
  const std::deque<job::WorkerExit>& exits() const { return exits_; }

 private:
  const std::string pod_uid_;
  const AgentClock clock_;
  const WorkerMonitorPeers parts_;
  WorkerCensus census_;
  std::deque<job::WorkerExit> exits_;  // the newest
};

}  // namespace ringmaster::app
