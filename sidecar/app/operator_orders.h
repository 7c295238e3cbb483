// What the operator tells this pod.
//
// Thread rule: the sidecar's loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/departure.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/operator_reports.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::app {

class OperatorOrders {
 public:
  OperatorOrders(AgentClock clock, MembershipLoop* membership, WorkerTable* workers,
                 Departure* departure, OperatorReports* reports);

  void OnConnection(bool connected);
  void OnAccepted();
  void OnViewDecided(const std::string& view);
  void OnDrain(const std::vector<std::string>& pods, const std::string& reason,
               int64_t deadline_unix_ms, std::optional<int64_t> left_ms = std::nullopt,
               std::optional<bool> all_leave = std::nullopt);
  void OnTarget(membership::Sizes sizes, uint32_t expected_pods);
  void OnFinish(const std::string& reason);
  void OnRecover(uint64_t lineage, bool fresh_workers);
  // Of workers that have been in a view, one may have been away when they were to be ended, or the
  // launcher that ends them; the operator says it once.
  void CheckFresh();

  bool connected() const { return connected_; }
  // By now the operator has told whether the job has a view already.
  bool HasLooked() const;

 private:
  void KillUsed();

  const AgentClock clock_;
  MembershipLoop* const membership_;
  WorkerTable* const workers_;
  Departure* const departure_;
  OperatorReports* const reports_;
  bool connected_ = false;
  std::optional<SteadyTime> accepted_at_, target_at_;
  uint64_t fresh_lineage_ = 0;  // it begins with workers that have been in no view
  SteadyTime killed_at_{};
};

}  // namespace ringmaster::app
