// Decides which jobs call for nodes: their pods may stand Pending though there is no room for them,
// because an autoscaler makes nodes for Pending pods. docs/scheduling.md says when a job does so,
// and at what price.
//
// A job calls when it could not start for a while only because there is too little free room. It
// does not call while less important jobs give up pods for any job, nor where the room that is
// free, or about to be, would be enough but is kept for another job. Only a few jobs call at a
// time, so that few of them hold part of what they need while nodes come. A job that has called in
// vain calls alone the next time, because jobs that call together may each hold what the others
// lack.
//
// Pure. The capacity outlives it.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

struct NodeCallRules {
  bool calls = false;            // false: there is no autoscaler
  std::chrono::seconds after{};  // a job calls after it has lacked room for this long
  std::size_t jobs_at_once = 1;  // this many jobs may wait for nodes at the same time
};

class NodeCalls {
 public:
  explicit NodeCalls(Capacity* capacity) : capacity_(*capacity) {}
  NodeCalls(const NodeCalls&) = delete;
  NodeCalls& operator=(const NodeCalls&) = delete;

  void SetRules(NodeCallRules rules) { rules_ = rules; }
  const NodeCallRules& rules() const { return rules_; }
  // Records whether pods of this job, which has yet to start, stand Pending so that nodes are made
  // for them. Returns true if that has changed.
  bool SetCalling(const std::string& job, bool calls, bool alone = false);

  // Decides at the end of a pass, when no room is reserved any more, and marks the jobs that may
  // call in their answers. `line` is in the order of the line. `room_is_made`: less important jobs
  // give up pods for one of them.
  void Decide(const std::vector<WaitingJob*>& line, bool room_is_made, Moment now);
  // At this time a job will have lacked room for long enough, or a pod is late in leaving.
  std::optional<Moment> look_again() const { return look_again_; }

 private:
  bool Lacks(WaitingJob* waiting, Moment now);
  bool NeedsTurn(const WaitingJob& waiting) const;
  bool IsTurnOf(const WaitingJob& waiting) const;
  void CountTurn(const WaitingJob& waiting);
  static bool KnowsWhere(const WaitingJob& waiting);
  bool MayCall(const WaitingJob& waiting, Moment now);
  bool Fits(const WaitingJob& waiting, Moment now);

  Capacity& capacity_;
  NodeCallRules rules_;
  std::map<std::string, bool> calling_;  // by job; true: it calls alone
  std::optional<Moment> look_again_;
  // Of the current pass: how many jobs call, and whether one of them calls alone.
  std::size_t turns_ = 0;
  bool taken_by_one_ = false;
  int tried_ = 0;
};

}  // namespace ringmaster::scheduler
