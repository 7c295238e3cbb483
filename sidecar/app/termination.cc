#include "sidecar/app/termination.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Of the time until a pod is killed: for resigning, where the boundary did not come. Half of it
// where there is little.
constexpr seconds kResignReserve{2};
// However little is said to be left: the word may come late, is in whole seconds, and kubelets give
// two seconds to a pod that has none.
constexpr milliseconds kLeastForBoundary{250};
constexpr milliseconds kGiveUpReserve{500};
// After the last worker is gone others may still ask for the view that was decided. At the end of
// the job nobody does: only the report that all have agreed to end has to be out, and workers take
// their time to exit after it.
constexpr milliseconds kLinger{300};

}  // namespace

milliseconds TimeForBoundary(milliseconds left) {
  return std::max(left - std::min<milliseconds>(kResignReserve, left / 2), kLeastForBoundary);
}

bool Termination::Begin(SteadyTime now, milliseconds grace) {
  if (std::exchange(begun_, true)) return false;
  resign_at_ = now + TimeForBoundary(grace);
  give_up_at_ = now + std::max(grace - kGiveUpReserve, kGiveUpReserve);
  return true;
}

Termination::Steps Termination::Next(SteadyTime now, const Situation& situation) {
  Steps steps;
  if (!begun_) return steps;
  if (!situation.workers_live) {
    if (!gone_since_) gone_since_ = now;
    const bool lingered = now - situation.finishing_since.value_or(*gone_since_) >= kLinger;
    steps.end = lingered && (!situation.needed || now >= give_up_at_);
    return steps;
  }
  gone_since_.reset();
  steps.stop_launcher = now >= resign_at_ && !std::exchange(launcher_stopped_, true);
  steps.end = now >= give_up_at_;
  return steps;
}

}  // namespace ringmaster::app
