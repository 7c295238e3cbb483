// Moments in the life of a job's pods, by the operator's clock: when a kubelet accepted a pod, when
// its worker began to run, and when it ended. A node says them by its own clock, which may be wrong
// by minutes; a timeout that counted from there would be over before it began.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

class WitnessedTimes {
 public:
  // Replaces what the nodes of these pods, which are all of the job, say: a moment is the one at
  // which it was first seen here. Of what had happened before this operator looked for the first
  // time the node's word stays, but not before the pod was created, and not after `now`.
  void Correct(const std::string& job_key, planner::Time now, std::vector<planner::PodFacts>* pods);
  void Forget(const std::string& job_key) { (void)Take(job_key); }

 private:
  struct Moment {
    bool awaited = false;  // it had not come when this operator looked
    std::optional<planner::Time> seen;
  };
  struct Moments {
    Moment accepted, running, ended;
  };
  using Pods = std::unordered_map<std::string, Moments>;  // by uid
  Pods Take(const std::string& job_key);
  static void CorrectOne(Moment& moment, planner::Time created, planner::Time now,
                         std::optional<planner::Time>* said);

  sync::Mutex mu_;
  std::map<std::string, Pods> known_ GUARDED_BY(mu_);  // by the job's key
};

}  // namespace ringmaster::controllers
