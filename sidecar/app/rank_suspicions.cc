#include "sidecar/app/rank_suspicions.h"

#include <algorithm>
#include <chrono>

namespace ringmaster::app {
namespace {

constexpr std::chrono::seconds kLasting{3};

}  // namespace

void RankSuspicions::Add(Epoch epoch, int rank, SteadyTime now) {
  epoch_ = epoch;
  since_.try_emplace(rank, now);
}

bool RankSuspicions::Accuse(const membership::View& view, int pod_index) const {
  if (epoch_ != view.epoch) return false;
  return std::any_of(since_.begin(), since_.end(), [&](const auto& entry) {
    return static_cast<int>(view.ranks[entry.first].pod) == pod_index;
  });
}

std::optional<int> RankSuspicions::TakeLasting(Epoch epoch, SteadyTime now) {
  if (epoch_ != epoch) return std::nullopt;
  for (const auto& [rank, since] : since_) {
    if (now - since < kLasting) continue;
    const int lasting = rank;
    since_.erase(lasting);
    return lasting;
  }
  return std::nullopt;
}

}  // namespace ringmaster::app
