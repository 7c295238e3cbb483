// In how many pods a job may train.
//
// Plain data.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster::membership {

struct Sizes {
  std::uint32_t least = 1;
  std::vector<std::uint32_t> allowed;  // ascending; empty: every number from `least` on

  // The largest number of pods that may train and isn't above `most`; 0: there is none.
  std::size_t AtMost(std::size_t most) const {
    if (allowed.empty()) return most >= least ? most : 0;
    const auto above = std::upper_bound(allowed.begin(), allowed.end(), most);
    const std::size_t found = above == allowed.begin() ? 0 : *(above - 1);
    return found >= least ? found : 0;
  }
  // A view of so many pods may not train, and is held until it is one of this size, which is
  // smaller; 0: not so.
  std::size_t ShrinksTo(std::size_t pods) const {
    const std::size_t size = AtMost(pods);
    return size < pods ? size : 0;
  }
  bool Allows(std::size_t pods) const {
    return allowed.empty() || std::binary_search(allowed.begin(), allowed.end(), pods);
  }
  bool MayTrain(std::size_t pods) const { return pods > 0 && AtMost(pods) == pods; }

  bool operator==(const Sizes&) const = default;
};

}  // namespace ringmaster::membership
