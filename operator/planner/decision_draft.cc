#include "operator/planner/decision_draft.h"

#include <algorithm>
#include <utility>

namespace ringmaster::planner {

void DecisionDraft::LookAgainAt(Time time) {
  // A little later than needed, so that "not yet" isn't found once more.
  const auto wait = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(time - now_),
                             std::chrono::milliseconds(0)) +
                    std::chrono::milliseconds(10);
  if (!look_again || wait < *look_again) look_again = wait;
}

void DecisionDraft::AddEvent(bool warning, std::string reason, std::string message,
                             std::string pod) {
  events.push_back({warning, std::move(reason), std::move(message), std::move(pod)});
}

}  // namespace ringmaster::planner
