// Which channel of the arenas each process set uses in a view (Communicator::Subset).
//
// All ranks of a view ask for the same sets in the same order, those that are not in a set too, so
// they all find the same channels without a word to each other. Sets without a common rank can use
// the same channel. What a removed set has used stays taken until the view is over, because the
// counters that it has left in the arenas would mislead another set.
//
// Owner: Participants. Thread rule: a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class SetChannels {
 public:
  // The channel of this set, whose ranks are `ranks`, ascending; 0: none is left for it.
  int Give(int32_t process_set, const std::vector<int>& ranks) {
    const auto [found, is_new] = channels_.try_emplace(process_set, 0);
    if (is_new) {
      found->second = FirstFree(ranks);
      if (found->second != 0) taken_.push_back({found->second, ranks});
    }
    return found->second;
  }
  // Whether the set has been given one.
  bool Has(int32_t process_set) const {
    const auto found = channels_.find(process_set);
    return found != channels_.end() && found->second != 0;
  }
  // The set has been removed; its number may come again.
  void Forget(int32_t process_set) { channels_.erase(process_set); }
  // The view is over.
  void Clear() {
    channels_.clear();
    taken_.clear();
  }

 private:
  struct Taken {
    int channel;
    std::vector<int> ranks;
  };

  int FirstFree(const std::vector<int>& ranks) const {
    for (int channel = 1; channel <= kSubsetChannels; ++channel) {
      if (std::none_of(taken_.begin(), taken_.end(), [&](const Taken& taken) {
            return taken.channel == channel && HaveCommon(taken.ranks, ranks);
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

  std::map<int32_t, int> channels_;  // by set
  std::vector<Taken> taken_;
};

}  // namespace ringmaster::engine
