#include "collectives/nccl/connect_plan.h"

#include <algorithm>
#include <utility>

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

// Why NCCL can't serve these ranks; empty: it can.
std::string WhyOnHost(std::span<const ConnectFacts> by_rank) {
  const auto rank_text = [](size_t rank) { return "rank " + std::to_string(rank); };
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].version == 0) return rank_text(rank) + " has no NCCL";
  }
  const int version = by_rank.front().version;
  for (size_t rank = 1; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].version == version) continue;
    return "NCCL is " + VersionText(version) + " on rank 0 and " +
           VersionText(by_rank[rank].version) + " on " + rank_text(rank) +
           ", and it connects ranks of the same version only";
  }
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].failed < kMostFailedConnects) continue;
    return rank_text(rank) + " had no NCCL communicator in " +
           std::to_string(by_rank[rank].failed) + " views one after the other";
  }
  return "";
}

// The same workers are in the new view. A communicator that was revoked can't be used any more. Nor
// can one on which one rank has launched what another hasn't (the root of a broadcast may complete
// it without the others): the next call of the one would meet the last call of the other.
bool CanBeKept(std::span<const ConnectFacts> by_rank) {
  return std::all_of(by_rank.begin(), by_rank.end(), [&](const auto& facts) {
    return facts.revoked == 0 && facts.launched == by_rank.front().launched;
  });
}

ConnectPlan PlanShrink(std::span<const ConnectFacts> by_rank) {
  ConnectPlan plan{.how = ConnectPlan::How::kShrink};
  plan.revoke =
      std::any_of(by_rank.begin(), by_rank.end(), [](const auto& f) { return f.revoked != 0; });
  // Nothing runs on a communicator that was revoked, nor on one that no fault has come upon.
  plan.abort = !plan.revoke && std::any_of(by_rank.begin(), by_rank.end(),
                                           [](const auto& f) { return f.faults != 0; });
  for (int rank = 0; rank < by_rank.front().size; ++rank) {
    const bool here = std::any_of(by_rank.begin(), by_rank.end(),
                                  [&](const auto& facts) { return facts.rank == rank; });
    if (!here) plan.excluded.push_back(rank);
  }
  return plan;
}

}  // namespace

ConnectPlan PlanConnect(std::span<const ConnectFacts> by_rank) {
  if (std::string why = WhyOnHost(by_rank); !why.empty()) {
    return {.how = ConnectPlan::How::kHost, .why = std::move(why)};
  }
  if (!AllHaveTheSame(by_rank) || !SameOrder(by_rank)) return {};
  const ConnectFacts& first = by_rank.front();
  if (by_rank.size() == static_cast<size_t>(first.size)) {
    return {.how = CanBeKept(by_rank) ? ConnectPlan::How::kKeep : ConnectPlan::How::kInit};
  }
  if (first.version < kFirstShrink) return {};
  return PlanShrink(by_rank);
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
