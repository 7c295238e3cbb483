// Which jobs call for nodes: their pods may stand Pending though there is no room for them, because
// an autoscaler makes nodes for pods that it sees so. docs/scheduling.md says when a job does, and
// at what price.
//
// A job calls when it could not start for a while, for want of free room and of nothing else: not
// while less important jobs leave for anybody, nor where what is free, or about to be, would be
// enough and is kept for another job. Only some call at a time, so that few jobs hold parts of what
// they need while nodes come; and who has called in vain does so alone the next time, as jobs that
// call together may each hold what the others lack.
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
  bool calls = false;            // false: there is no autoscaler that would hear
  std::chrono::seconds after{};  // a job has lacked room for so long
  std::size_t jobs_at_once = 1;  // wait for nodes
};

class NodeCalls {
 public:
  explicit NodeCalls(Capacity* capacity) : capacity_(*capacity) {}
  NodeCalls(const NodeCalls&) = delete;
  NodeCalls& operator=(const NodeCalls&) = delete;

  void SetRules(NodeCallRules rules) { rules_ = rules; }
  const NodeCallRules& rules() const { return rules_; }
  // Pods of the job, which has yet to start, stand Pending so that nodes are made; or none do any
  // more. True: that is new.
  bool SetCalling(const std::string& job, bool calls, bool alone = false);

  // At the end of a pass, when nothing is kept for anybody. `line`: in order; says in their answers
  // who calls. `room_is_made`: less important jobs leave for one of them.
  void Decide(const std::vector<WaitingJob*>& line, bool room_is_made, Moment now);
  // Then somebody will have lacked room for long enough, or a pod has not gone that should have.
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
  std::map<std::string, bool> calling_;  // jobs; true: it calls alone
  std::optional<Moment> look_again_;
  // Of the pass that runs: so many call, and whether one of them does so alone.
  std::size_t turns_ = 0;
  bool taken_by_one_ = false;
  int tried_ = 0;
};

}  // namespace ringmaster::scheduler
