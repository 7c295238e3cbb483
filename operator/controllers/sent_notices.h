// The notices that were sent in one sidecar's stream: the newest on each topic, so that none is
// sent twice.
//
// Thread rule: none; the registry's lock guards it.
#pragma once

#include <vector>

#include "operator/planner/decision.h"

namespace ringmaster::controllers {

class SentNotices {
 public:
  // Returns whether the notice is to be sent: it differs from the last one on its topic.
  bool Add(const planner::Notice& notice);

 private:
  std::vector<planner::Notice> newest_;  // one for each topic
};

}  // namespace ringmaster::controllers
