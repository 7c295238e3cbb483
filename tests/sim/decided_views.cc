#include "tests/sim/decided_views.h"

#include <algorithm>

namespace ringmaster::app::sim {

void DecidedViews::Add(const ViewPtr& view) {
  Of(view->epoch).view = view;
  if (membership::EpochOf(newest_) < view->epoch) newest_ = view;
}

bool DecidedViews::IsOver(Epoch epoch) const {
  return std::any_of(by_epoch_.upper_bound(epoch), by_epoch_.end(),
                     [](const auto& later) { return later.second.view != nullptr; });
}

std::optional<Epoch> DecidedViews::SuccessorOf(Epoch epoch) const {
  const auto later = by_epoch_.upper_bound(epoch);
  if (later == by_epoch_.end() || later->second.view == nullptr) return std::nullopt;
  return later->first;
}

}  // namespace ringmaster::app::sim
