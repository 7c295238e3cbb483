// Which worker has which rank in a view, and which ranks take part in an operation.
//
// Owner: the negotiator. Thread rule: the engine's thread only.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/request.h"
#include "collectives/engine/set_table.h"

namespace ringmaster::engine {

class ViewRanks {
 public:
  explicit ViewRanks(const SetTable* sets) : sets_(sets) {}

  // A new view of these workers, by rank.
  void Reset(std::vector<std::string> workers) {
    workers_ = std::move(workers);
    of_set_.clear();
    of_transfer_.clear();
  }
  void ForgetSet(int32_t process_set) {
    of_set_.erase(process_set);
    std::erase_if(of_transfer_,
                  [&](const auto& entry) { return entry.first.first == process_set; });
  }

  size_t size() const { return workers_.size(); }
  const std::string& WorkerAt(int rank) const { return workers_[static_cast<size_t>(rank)]; }
  // -1: the worker is not in the view, or `worker` is empty.
  int RankOf(const std::string& worker) const {
    const auto found = std::find(workers_.begin(), workers_.end(), worker);
    return worker.empty() || found == workers_.end() ? -1
                                                     : static_cast<int>(found - workers_.begin());
  }
  // The ranks of a process set's members, ascending; of set 0, all ranks.
  const std::vector<int>& OfSet(int32_t process_set) {
    const auto [found, is_new] = of_set_.try_emplace(process_set);
    for (size_t rank = 0; is_new && rank < workers_.size(); ++rank) {
      if (sets_->Has(process_set, workers_[rank])) found->second.push_back(static_cast<int>(rank));
    }
    return found->second;
  }
  // The ranks that take part in this operation, ascending. For a transfer: those of its two workers
  // that are in the view and in the set.
  const std::vector<int>& Of(const Request& request) {
    if (request.kind != Kind::kTransfer) return OfSet(request.process_set);
    const auto [found, is_new] = of_transfer_.try_emplace({request.process_set, request.members});
    for (const std::string& worker : request.members) {
      const int rank = is_new && sets_->Has(request.process_set, worker) ? RankOf(worker) : -1;
      if (rank >= 0) found->second.push_back(rank);
    }
    if (is_new) std::sort(found->second.begin(), found->second.end());
    return found->second;
  }
  bool TakesPart(const Request& request, int rank) {
    const std::vector<int>& ranks = Of(request);
    return !request.is_partial() || std::binary_search(ranks.begin(), ranks.end(), rank);
  }
  bool IsIn(int32_t process_set, int rank) {
    const std::vector<int>& ranks = OfSet(process_set);
    return process_set == 0 || std::binary_search(ranks.begin(), ranks.end(), rank);
  }

 private:
  const SetTable* const sets_;
  std::vector<std::string> workers_;  // by rank
  // Both maps are filled when a set or transfer is first asked for.
  std::map<int32_t, std::vector<int>> of_set_;
  // By process set, and the two workers of the transfer.
  std::map<std::pair<int32_t, std::vector<std::string>>, std::vector<int>> of_transfer_;
};

}  // namespace ringmaster::engine
