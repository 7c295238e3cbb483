// How this pod leaves the job: drained, terminated, or because the job ends.
//
// It owns these states and tells the membership and the workers what follows from them. Thread
// rule: the sidecar's loop only.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sidecar/app/agent_outputs.h"
#include "sidecar/app/membership_loop.h"
#include "sidecar/app/termination.h"
#include "sidecar/app/worker_table.h"

namespace ringmaster::app {

class Departure {
 public:
  Departure(std::string pod_uid, std::chrono::seconds grace, AgentClock clock,
            MembershipLoop* membership, WorkerTable* workers);

  bool draining() const { return draining_; }
  bool left() const { return left_; }
  bool finishing() const { return finishing_since_.has_value(); }
  // As far as this sidecar was told, all pods of its view leave.
  bool EverybodyLeaves() const;

  // The operator says that some pods leave, this one maybe. The boundary may be waited for until
  // `deadline`. `all_leave`: the job's, and none comes that could take over; no value: an operator
  // of an earlier version doesn't say it, and names all pods then.
  void Drain(const std::vector<std::string>& pods, const std::string& reason,
             std::optional<SteadyTime> deadline, std::optional<bool> all_leave);
  // SIGTERM came to the container of the workers: this pod has its grace period. Whether others may
  // come that take over, the operator has said or is about to say. If it is connected and silent,
  // none is waited for.
  void DrainOnSignal();
  void OperatorConnected(bool connected);
  // The membership has decided a view without this pod.
  void LeaveByPlan();
  // The workers stand at the boundary of this view.
  void BoundaryReached(Epoch epoch);
  // If all pods of the view leave, no view comes after it: the workers go at its next boundary.
  // Where pods may come that take over, they wait for one as long as their time allows.
  void CheckEverybodyLeaves();
  // All pods of view `epoch`, which is installed now, leave at its first boundary: a step that its
  // workers began would be one more than those did that have left already. True: its workers have
  // to know that before they know the view.
  bool EntersArmed(Epoch epoch);

  // All ranks have agreed to end. False: it was known.
  bool FinishedByRanks(Epoch epoch);
  void FinishByOperator(const std::string& reason);
  // Lets workers go that have not ended long after the job.
  void CheckFinish();

  // SIGTERM came to this sidecar: drain, then end.
  void Terminate();
  bool terminating() const { return termination_.begun(); }
  void CheckTermination();

 private:
  void StartToLeave(const std::vector<std::string>& pods, const std::string& reason,
                    std::optional<SteadyTime> deadline);
  void LeaveOnSignal(SteadyTime deadline);
  void Leave(const std::string& reason);
  // The operator has not said yet that it has written down that the job is over.
  bool OperatorHasToHear() const;
  // Another pod may come to which this one can give the state.
  bool WaitsForOthers() const;
  bool GoesAtNextBoundary() const;

  const std::string pod_uid_;
  const std::chrono::seconds grace_;
  const AgentClock clock_;
  MembershipLoop* const membership_;
  WorkerTable* const workers_;
  bool draining_ = false, left_ = false;
  std::string drain_reason_;
  std::set<std::string> drained_pods_;  // asked to leave, as far as this sidecar was told
  bool says_all_leave_ = false;         // the operator, of the whole job
  bool operator_has_spoken_ = false;    // of this pod's leaving
  bool others_may_come_ = false;        // that could take over, says the operator
  bool operator_connected_ = false;
  bool operator_was_connected_ = false;  // since this sidecar started
  bool operator_knows_of_end_ = false;
  std::optional<SteadyTime> operator_awaited_until_;  // since SIGTERM, while it is connected
  std::optional<SteadyTime> stays_until_;  // at the latest, for the sake of one that comes
  Epoch armed_ = 0;                        // the last view of which everybody leaves
  Epoch boundary_ = 0;                     // the last view at whose boundary the workers stood
  std::optional<SteadyTime> finishing_since_;
  Termination termination_;
};

}  // namespace ringmaster::app
