#include "common/membership/joins_and_leaves.h"

#include <string>

namespace ringmaster::membership {

JoinsAndLeaves::JoinsAndLeaves(const Parts& parts, const Pod& self, const Timers& timers)
    : parts_(parts),
      drains_(self.uid),
      applicants_({parts.state, parts.peers, &drains_, parts.outbox}, timers),
      request_({parts.state, parts.workers, &drains_, &applicants_, parts.outbox}, self, timers) {}

void JoinsAndLeaves::EnterView(bool was_in, bool was_resigned) {
  applicants_.EnterView();
  request_.EnterView(was_in, was_resigned);
}

void JoinsAndLeaves::FindDepartures(bool newly) {
  drains_.EnterView(parts_.state->in_view());
  if (drains_.left() || !newly) return;
  for (const std::string& pod : drains_.TakeDeparted(parts_.state->view())) {
    applicants_.Remove(pod);
  }
}

bool JoinsAndLeaves::DrainOver() {
  if (!drains_.draining() || parts_.state->stored().resigned || parts_.workers->finishing()) {
    return false;
  }
  if (drains_.Expire(parts_.outbox->now())) {
    parts_.outbox->EmitLog("the drain deadline has passed: stops in the middle of a step");
  }
  if (!drains_.expired()) return false;
  parts_.workers->StopView();
  return parts_.workers->stopped();
}

std::optional<TimePoint> JoinsAndLeaves::NextDeadline(bool planning) const {
  std::optional<TimePoint> next = request_.repeat().at;
  auto consider = [&](const std::optional<TimePoint>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  if (parts_.workers->finishing()) return next;  // nobody leaves or is let in any more
  if (parts_.state->in_view() && !parts_.state->stored().resigned) {
    consider(drains_.NextDeadline());
  }
  if (!planning) consider(applicants_.NextDeadline());
  return next;
}

}  // namespace ringmaster::membership
