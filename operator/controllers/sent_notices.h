// The notices that were sent in one sidecar's stream, so that none is sent twice, and the lists of
// pods that those of a job's streams share.
//
// Thread rule: none; the registry's lock guards it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/planner/decision.h"

namespace ringmaster::controllers {

class SentNotices {
 public:
  // `all` is what the sidecar should know by now. Returns what it has not been sent yet: what
  // stands on its topic for the first time, or has changed. Topics that `all` has no more are
  // forgotten, so no more is kept than a look at the job finds.
  std::vector<planner::Notice> New(const std::vector<planner::Notice>& all);

 private:
  std::map<std::string, planner::Notice> newest_;  // by topic
};

// The lists of pods in the notices of a job's last look. A list that is the same in the next look
// is the same object then: it is compared once, and not once for each stream.
class SharedLists {
 public:
  void Share(std::vector<planner::PodNotice>* notices);

 private:
  planner::GonePods gone_;
  planner::Uids leaving_;  // together
};

}  // namespace ringmaster::controllers
