// What this pod has to tell of itself again and again: to the operator whether its workers are
// ready and able to train, which tensors they wait for, which of their GPUs fail, and that no first
// view came in time; to the metrics whether it coordinates, and how its GPUs are.
//
// Each report looks at the parts as they are now; OperatorReports sends it where it is news. Thread
// rule: the sidecar's loop only.
#pragma once

#include <chrono>

#include "common/membership/view.h"
#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_orders.h"
#include "sidecar/app/operator_reports.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app {

// The parts that it looks at; they outlive it.
struct PodReporterParts {
  const MembershipLoop* membership;
  const WorkerTable* table;
  const Departure* departure;
  const OperatorOrders* orders;
  OperatorReports* reports;
  health::Metrics* metrics;
};

class PodReporter {
 public:
  PodReporter(membership::Pod self, std::chrono::seconds init_timeout, AgentClock clock,
              PodReporterParts parts);

  // The sidecar starts: from now on the first view is waited for.
  void Start() { started_at_ = clock_.now(); }
  // Events have been worked off.
  void AfterEvents();
  void Tick();
  // Once, when no first view has come within the init timeout.
  void CheckInitTimeout();

 private:
  void ReportReadiness();
  void ReportHealth();
  void ReportAllLeave();
  void ReportStalls();
  void ReportGpus();

  const membership::Pod self_;
  const std::chrono::seconds init_timeout_;
  const AgentClock clock_;
  const PodReporterParts parts_;
  SteadyTime started_at_{};
  bool init_timeout_reported_ = false;
  std::size_t failing_logged_ = 0;  // how many failing GPUs the log has
};

}  // namespace ringmaster::app
