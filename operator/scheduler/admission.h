// Decides which of the waiting jobs may start, and how many of their pods. One pass decides for all
// of them. Every pod that is granted has a place held on a node until it runs, so that no other job
// counts on that place.
//
// The line of waiting jobs begins with the jobs that hold pods but too few of them to train: their
// pods are of no use until they get the rest. All others follow by priority; among equal
// priorities, jobs that wait for their start come before jobs that train and could grow, and then
// the job that has waited longest comes first. A job is granted as many pods together as its
// smallest size needs, or none. What is left then lets jobs grow: the job with the smallest share,
// weighed by priority (shares.h), comes first.
//
// Where a job that can't start is more important than jobs that train, those give up the pods that
// they can do without (preemption.h), and where these are not enough, all their pods
// (whole_jobs.h). Until those pods have gone, the free room of their nodes is kept for the waiting
// job.
//
// Small jobs pass a large one that doesn't fit yet (backfill), until it has waited for kPatience:
// from then on free room is reserved for it, for one such job at a time. docs/scheduling.md says
// which reservations are sound.
//
// Pure: no clock, no thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/fair_growth.h"
#include "operator/scheduler/grants.h"
#include "operator/scheduler/node_calls.h"
#include "operator/scheduler/pass_trigger.h"
#include "operator/scheduler/pod_demand.h"
#include "operator/scheduler/reservation.h"
#include "operator/scheduler/takers.h"
#include "operator/scheduler/topology.h"
#include "operator/scheduler/waiting_line.h"

namespace ringmaster::scheduler {

class Admission {
 public:
  // For this long smaller jobs may pass one that doesn't fit.
  static constexpr std::chrono::seconds kPatience{120};

  Capacity& capacity() { return capacity_; }
  // Sets which jobs may have Pending pods so that an autoscaler makes nodes for them; by default
  // none.
  void SetNodeCallRules(NodeCallRules rules) { node_calls_.SetRules(rules); }

  // Puts the job in line, or changes its request. A job keeps as many places as it was granted
  // before and has not used yet. If `at_once` is true and no other job waits, this call decides;
  // otherwise the next Pass does. `started` has the paths of the job's pods that may start or have
  // started. Returns how many of the requested pods may start, and why the next one may not.
  GangFit Ask(AdmissionRequest request, const std::vector<std::string>& started,
              bool at_once = true);
  // The job requests nothing any more. Places held for its pods become free, except those of
  // `started`.
  void Withdraw(const std::string& job, const std::vector<std::string>& started = {});

  // Replaces what a training job could give up for more important ones.
  void SetHolding(Holding holding);
  void RemoveHolding(const std::string& job);
  // See NodeCalls::SetCalling.
  void SetCalling(const std::string& job, bool calls, bool alone = false);
  // The pods that this job is to give up.
  std::vector<PodDemand> DemandsOn(const std::string& job) const;

  // A job waits, and something has changed since the last pass.
  bool IsPassDue() const;
  // At this time a pass is due even if nothing has changed: a pod that was expected to leave has
  // not gone, a job has lacked room for long enough to call for nodes, or a pod has
  // kept its place in vain for long enough.
  std::optional<Moment> look_again() const;
  void LookAgain() { trigger_.Ask(); }
  // Decides for all waiting jobs; returns the jobs whose answer has changed.
  std::vector<std::string> Pass(Moment now);

 private:
  void Replace(WaitingJob* waiting, AdmissionRequest request,
               const std::vector<std::string>& started);
  void BeginPass(Moment now);
  void ForgetLost();
  void Decide(const std::vector<WaitingJob*>& order, Moment now);
  void GiveTheLeast(WaitingJob* waiting, Moment now);
  void ForgetTakers();

  Capacity capacity_;
  Grants grants_{&capacity_};
  Reservation reservation_{&capacity_, &grants_};
  Takers takers_{&capacity_};
  Topology topology_{&capacity_};
  FairGrowth growth_{capacity_, &reservation_, &topology_};
  NodeCalls node_calls_{&capacity_};
  WaitingLine line_;
  PassTrigger trigger_{capacity_};
  std::optional<Moment> in_vain_until_;  // see Capacity::GiveUpInVain
};

}  // namespace ringmaster::scheduler
