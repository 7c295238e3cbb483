// The decision while the phases of one Plan() call make it.
//
// Owner and thread: Plan(); one thread.
#pragma once

#include <string>

#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

class DecisionDraft : public Decision {
 public:
  explicit DecisionDraft(Time now) : now_(now) {}

  // Of several times the earliest counts.
  void LookAgainAt(Time time);
  void AddEvent(bool warning, std::string reason, std::string message, std::string pod = "");

 private:
  const Time now_;
};

}  // namespace ringmaster::planner
