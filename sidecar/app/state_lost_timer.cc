#include "sidecar/app/state_lost_timer.h"

#include <utility>

namespace ringmaster::app {
namespace {

// Pings report several times in this time whether the view's first operation is done.
constexpr std::chrono::seconds kPatienceWithoutOperator{2};

}  // namespace

StateLostTimer::Event StateLostTimer::Update(bool lost, bool operator_connected, SteadyTime now) {
  if (gave_up_ || !lost) {
    since_.reset();
    return Event::kNone;
  }
  const bool first = !since_;
  if (first || operator_connected) since_ = now;
  const auto patience = has_operator_ ? operator_patience_ : kPatienceWithoutOperator;
  if (now - *since_ >= patience) {
    gave_up_ = true;
    return Event::kGiveUp;
  }
  return first ? Event::kLost : Event::kNone;
}

}  // namespace ringmaster::app
