#include "common/membership/broken_links.h"

namespace ringmaster::membership {

void BrokenLinks::Clear() {
  broken_ = false;
  accusations_.clear();
}

std::vector<int> BrokenLinks::AccusedBy(int accuser) const {
  std::vector<int> pods;
  for (const auto& [by, accused] : accusations_) {
    if (by == accuser) pods.push_back(accused);
  }
  return pods;
}

}  // namespace ringmaster::membership
