// The ranks of a view that have joined: they have no more data, and take part in what the others
// ask for, with nothing of their own, until all ranks have joined.
//
// Owner: the negotiator. Thread rule: the engine's thread only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "collectives/engine/request.h"

namespace ringmaster::engine {

class JoinedRanks {
 public:
  // A new view, in which ranks that have joined announce their join again.
  void Reset() { ranks_.clear(); }
  void Hear(int rank) { ranks_.push_back(rank); }
  // All ranks have joined, and all know it. From now on no rank counts as joined.
  void End() {
    ranks_.clear();
    own_number_.reset();
  }

  bool empty() const { return ranks_.empty(); }
  size_t size() const { return ranks_.size(); }
  // In the order in which they were heard to join.
  const std::vector<int>& ranks() const { return ranks_; }
  bool Has(int rank) const { return std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end(); }
  bool HasAll(const std::vector<int>& ranks) const {
    return std::all_of(ranks.begin(), ranks.end(), [this](int rank) { return Has(rank); });
  }
  // The rank that joined last, when all have joined. `joins`: the join that each rank has
  // announced; its `count` is the rank's OwnNumber(). Of ranks with the same number, the one that
  // was heard last counts.
  int Last(const std::map<int, Request>& joins) const {
    int last = ranks_.front();
    for (int rank : ranks_) {
      if (joins.at(rank).count >= joins.at(last).count) last = rank;
    }
    return last;
  }

  // The number of the operation before which this rank has asked to join. The first call notes
  // `number`; later calls return it, even if views have changed since, so that the ranks find the
  // same last rank after a death has made all of them announce again.
  uint64_t OwnNumber(uint64_t number) {
    if (!own_number_) own_number_ = number;
    return *own_number_;
  }
  // This rank has not asked to join.
  void ForgetOwn() { own_number_.reset(); }

 private:
  std::vector<int> ranks_;
  std::optional<uint64_t> own_number_;
};

}  // namespace ringmaster::engine
