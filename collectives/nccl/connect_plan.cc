#include "collectives/nccl/connect_plan.h"

#include <algorithm>

#include "collectives/nccl/nccl_types.h"

namespace ringmaster::nccl {
namespace {

constexpr uint64_t kFnvBegin = 14695981039346656037u, kFnvFactor = 1099511628211u;

uint64_t Mix(uint64_t hash, unsigned char byte) { return (hash ^ byte) * kFnvFactor; }

// A communicator that is shrunk keeps the order of its ranks. If the ranks of the view are in
// another order (a rank that was free was given to another worker), a new communicator is needed.
bool SameOrder(std::span<const ConnectFacts> by_rank) {
  return std::is_sorted(by_rank.begin(), by_rank.end(),
                        [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

bool AllHaveTheSame(std::span<const ConnectFacts> by_rank) {
  const ConnectFacts& first = by_rank.front();
  return first.size > 0 && std::all_of(by_rank.begin(), by_rank.end(), [&](const auto& facts) {
           return facts.origin == first.origin && facts.size == first.size;
         });
}

std::string VersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

Status PlanConnect(std::span<const ConnectFacts> by_rank, ConnectPlan* plan) {
  *plan = {};
  const ConnectFacts& first = by_rank.front();
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].version != 0) continue;
    *plan = {.how = ConnectPlan::How::kHost,
             .why = "rank " + std::to_string(rank) + " has no NCCL"};
    return {};
  }
  for (size_t rank = 1; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].version / 100 == first.version / 100) continue;
    return {RM_ERR_INTERNAL, "NCCL is " + VersionText(first.version) + " on rank 0 and " +
                                 VersionText(by_rank[rank].version) + " on rank " +
                                 std::to_string(rank) + ": all workers need the same version"};
  }
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].failed < kMostFailedConnects) continue;
    *plan = {.how = ConnectPlan::How::kHost,
             .why = "rank " + std::to_string(rank) + " had no NCCL communicator in " +
                    std::to_string(by_rank[rank].failed) + " views one after the other"};
    return {};
  }
  if (!AllHaveTheSame(by_rank) || !SameOrder(by_rank)) return {};
  const bool any_revoked =
      std::any_of(by_rank.begin(), by_rank.end(), [](const auto& f) { return f.revoked != 0; });
  if (by_rank.size() == static_cast<size_t>(first.size)) {
    // The same workers are in the new view. A communicator that was revoked can't be used any more.
    // Nor can one on which one rank has launched what another hasn't (the root of a broadcast may
    // complete it without the others): the next call of the one would meet the last call of the
    // other.
    const bool level = std::all_of(by_rank.begin(), by_rank.end(), [&](const auto& facts) {
      return facts.launched == first.launched;
    });
    if (!any_revoked && level) plan->how = ConnectPlan::How::kKeep;
    return {};
  }
  if (first.version < kFirstShrink) return {};
  plan->how = ConnectPlan::How::kShrink;
  plan->revoke = any_revoked;
  // Nothing runs on a communicator that was revoked, nor on one that no fault has come upon.
  plan->abort = !any_revoked && std::any_of(by_rank.begin(), by_rank.end(),
                                            [](const auto& f) { return f.faults != 0; });
  for (int rank = 0; rank < first.size; ++rank) {
    const bool here = std::any_of(by_rank.begin(), by_rank.end(),
                                  [&](const auto& facts) { return facts.rank == rank; });
    if (!here) plan->excluded.push_back(rank);
  }
  return {};
}

uint64_t OriginOf(std::span<const char> id) {
  uint64_t hash = kFnvBegin;
  for (char byte : id) hash = Mix(hash, static_cast<unsigned char>(byte));
  return hash;
}

uint64_t OriginOf(uint64_t parent, std::span<const int> excluded) {
  uint64_t hash = parent;
  for (int rank : excluded) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = Mix(hash, static_cast<unsigned char>(static_cast<unsigned>(rank) >> shift));
    }
  }
  return hash;
}

}  // namespace ringmaster::nccl
