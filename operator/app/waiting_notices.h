// The notices that wait until one sidecar has read those before them. Of two on one topic only the
// newer one waits, in the place of the older one, so a sidecar that reads slowly makes no queue
// grow. Pure.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>

#include "operator.pb.h"
#include "operator/app/told_of_gone.h"
#include "operator/planner/decision.h"

namespace ringmaster::app {

class WaitingNotices {
 public:
  void Add(planner::Notice notice);
  // Takes the first message; nullopt: none waits. Of pods that are gone each message names one, and
  // none that an earlier one has named with the same reason.
  std::optional<v1::OperatorNotice> Next();
  std::size_t size() const { return waiting_.size(); }  // notices

 private:
  struct Waiting {
    std::string topic;
    planner::Notice notice;
  };
  std::list<Waiting> waiting_;
  std::map<std::string, std::list<Waiting>::iterator> by_topic_;
  ToldOfGone gone_;
};

}  // namespace ringmaster::app
