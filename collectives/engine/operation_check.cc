#include "collectives/engine/operation_check.h"

#include <utility>

namespace ringmaster::engine {
namespace {

// `by_rank`: the requests of those of its two workers that are in the view and have not joined.
Status CheckTransfer(const Request& request, const std::map<int, Request>& by_rank,
                     ViewRanks* ranks) {
  if (request.members.size() != 2) return {RM_ERR_INTERNAL, "a send is not between two workers"};
  const std::string which = "send '" + request.name + "' from " + request.members.front() + " to " +
                            request.members.back() + ": ";
  for (const std::string& worker : request.members) {
    if (ranks->RankOf(worker) < 0) return {RM_ERR_ROOT_LOST, which + worker + " has died or left"};
    if (!ranks->IsIn(request.process_set, ranks->RankOf(worker))) {
      return {RM_ERR_INVALID,
              which + worker + " is not in process set " + std::to_string(request.process_set)};
    }
    if (!by_rank.contains(ranks->RankOf(worker)))
      return {RM_ERR_INVALID, which + worker + " has joined"};
  }
  return {};
}

}  // namespace

Status CheckOperation(const std::map<int, Request>& by_rank, const SetTable& sets,
                      ViewRanks* ranks) {
  for (const auto& [rank, request] : by_rank) {
    if (!request.problem.empty()) {
      return {RM_ERR_INVALID, "tensor '" + request.name + "': " + request.problem + " on rank " +
                                  std::to_string(rank)};
    }
    if (request.kind == Kind::kTransfer) {
      if (Status s = CheckTransfer(request, by_rank, ranks); !s.ok()) return s;
      continue;
    }
    // The root is a worker, not a rank: whoever has its rank now has other data.
    if (!request.root.empty() && ranks->RankOf(request.root) < 0) {
      return {RM_ERR_ROOT_LOST, "broadcast '" + request.name + "': its root, " + request.root +
                                    ", has died or left, and nobody else has its data"};
    }
    if (!request.root.empty() && !ranks->IsIn(request.process_set, ranks->RankOf(request.root))) {
      return {RM_ERR_INVALID, "broadcast '" + request.name + "': its root, " + request.root +
                                  ", is not in process set " + std::to_string(request.process_set)};
    }
    if (request.kind == Kind::kRemoveSet && !sets.Has(request.removed_set)) {
      return {RM_ERR_INVALID, "process set " + std::to_string(request.removed_set) +
                                  " is unknown: it was never added, or has been removed"};
    }
    if (!request.root.empty() && !by_rank.contains(ranks->RankOf(request.root))) {
      return {RM_ERR_INVALID,
              "broadcast '" + request.name + "': its root, " + request.root + ", has joined"};
    }
    if (request.kind == Kind::kJoin) return {};  // joins may differ in when they were asked for
  }
  if (std::string why = DescribeMismatch(by_rank); !why.empty()) {
    return {RM_ERR_MISMATCH, std::move(why)};
  }
  return {};
}

std::string DescribeRivals(const std::map<int, Request>& one, const std::map<int, Request>& other,
                           const JoinedRanks& joined, ViewRanks* ranks) {
  const Request& first = one.begin()->second;
  const Request& second = other.begin()->second;
  if (first.name != second.name || first.process_set == second.process_set) return {};
  // A transfer waits for its two workers only, and its name blocks no other operation.
  if (first.kind == Kind::kTransfer || second.kind == Kind::kTransfer) return {};
  const auto asks_in = [&](const std::map<int, Request>& by_rank, int32_t set) {
    for (const auto& [rank, request] : by_rank) {
      if (ranks->IsIn(set, rank)) return rank;
    }
    return -1;
  };
  const int a = asks_in(one, second.process_set), b = asks_in(other, first.process_set);
  if (a < 0 || b < 0) return {};
  // A rank that has asked in neither set may still ask in one of them, so they don't wait for ever.
  for (int32_t set : {first.process_set, second.process_set}) {
    for (int rank : ranks->OfSet(set)) {
      if (!one.contains(rank) && !other.contains(rank) && !joined.Has(rank)) return {};
    }
  }
  return "tensor '" + first.name + "' differs between ranks: process set is " +
         std::to_string(first.process_set) + " on rank " + std::to_string(a) + " and " +
         std::to_string(second.process_set) + " on rank " + std::to_string(b);
}

}  // namespace ringmaster::engine
