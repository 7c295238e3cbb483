// Which channel of the arenas each process set uses in a view (Communicator::Subset).
//
// All ranks of a view ask for the same sets in the same order, those that are not in a set too, so
// they all find the same channels without a word to each other. Sets without a common rank can use
// the same channel. A set keeps its channel until the view is over, even if it is removed, because
// the counters that it has left in the arenas would mislead another set.
//
// Owner: Participants. Thread rule: a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class SetChannels {
 public:
  // The channel of this set, whose ranks are `ranks`, ascending; 0: none is left for it.
  int Of(int32_t process_set, const std::vector<int>& ranks) {
    const auto [found, is_new] = channels_.try_emplace({process_set, ranks}, 0);
    if (is_new) found->second = FirstFree(ranks);
    return found->second;
  }
  // The view is over.
  void Clear() { channels_.clear(); }

 private:
  int FirstFree(const std::vector<int>& ranks) const {
    for (int channel = 1; channel <= kSubsetChannels; ++channel) {
      if (std::none_of(channels_.begin(), channels_.end(), [&](const auto& entry) {
            return entry.second == channel && HaveCommon(entry.first.second, ranks);
          }))
        return channel;
    }
    return 0;
  }
  static bool HaveCommon(const std::vector<int>& some, const std::vector<int>& others) {
    return std::any_of(some.begin(), some.end(), [&](int rank) {
      return std::binary_search(others.begin(), others.end(), rank);
    });
  }

  std::map<std::pair<int32_t, std::vector<int>>, int> channels_;  // by set and its ranks
};

}  // namespace ringmaster::engine
