// Who has which rank in a view, and which ranks a process set has in it.
//
// Owner: the negotiator. Thread rule: the engine's thread only.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/set_table.h"

namespace ringmaster::engine {

class ViewRanks {
 public:
  explicit ViewRanks(const SetTable* sets) : sets_(sets) {}

  // A new view of these workers, by rank.
  void Reset(std::vector<std::string> workers) {
    workers_ = std::move(workers);
    of_set_.clear();
  }
  void ForgetSet(int32_t process_set) { of_set_.erase(process_set); }

  size_t size() const { return workers_.size(); }
  const std::string& WorkerAt(int rank) const { return workers_[static_cast<size_t>(rank)]; }
  // -1: not in the view, or none.
  int RankOf(const std::string& worker) const {
    const auto found = std::find(workers_.begin(), workers_.end(), worker);
    return worker.empty() || found == workers_.end() ? -1
                                                     : static_cast<int>(found - workers_.begin());
  }
  // Ascending.
  const std::vector<int>& OfSet(int32_t process_set) {
    const auto [found, is_new] = of_set_.try_emplace(process_set);
    for (size_t rank = 0; is_new && rank < workers_.size(); ++rank) {
      if (sets_->Has(process_set, workers_[rank])) found->second.push_back(static_cast<int>(rank));
    }
    return found->second;
  }
  bool IsIn(int32_t process_set, int rank) {
    const std::vector<int>& ranks = OfSet(process_set);
    return process_set == 0 || std::binary_search(ranks.begin(), ranks.end(), rank);
  }

 private:
  const SetTable* const sets_;
  std::vector<std::string> workers_;            // by rank
  std::map<int32_t, std::vector<int>> of_set_;  // made when asked for
};

}  // namespace ringmaster::engine
