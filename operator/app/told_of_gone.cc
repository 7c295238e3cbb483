#include "operator/app/told_of_gone.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {

std::optional<planner::GonePod> ToldOfGone::Next() {
  while (now_ != nullptr || newest_ != nullptr) {
    if (now_ == nullptr) {
      now_ = std::exchange(newest_, nullptr);
      next_ = 0;
    }
    while (next_ < now_->size()) {
      const planner::GonePod& pod = (*now_)[next_++];
      const bool told = told_ != nullptr && std::binary_search(told_->begin(), told_->end(), pod);
      if (!told) return pod;
    }
    told_ = std::exchange(now_, nullptr);
  }
  return std::nullopt;
}

}  // namespace ringmaster::app
