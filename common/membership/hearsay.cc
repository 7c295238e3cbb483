#include "common/membership/hearsay.h"

#include <algorithm>

#include "common/membership/next_view.h"

namespace ringmaster::membership {
namespace {

// The pods that would be dropped though nobody accuses them. A pod that says it does not hear this
// member is not one of them: this member lives, so that pod is the one that is cut off.
std::vector<int> OnlyAccusers(const Hearsay::Edges& edges, int self) {
  std::vector<int> pods = PodsToDrop(edges, self);
  std::erase_if(pods, [&](int pod) {
    return std::any_of(edges.begin(), edges.end(), [&](const auto& edge) {
      return edge.second == pod || edge == std::pair(pod, self);
    });
  });
  return pods;
}

}  // namespace

void Hearsay::Clear() {
  told_.clear();
  unclear_since_.clear();
  acted_on_.clear();
  counted_.clear();
  due_.reset();
}

void Hearsay::Weigh(const std::vector<bool>& gone, int self, TimePoint now) {
  due_.reset();
  counted_.clear();
  for (const auto& [accuser, accused] : told_) {
    if (!gone[accuser] && !gone[accused]) counted_.emplace_back(accuser, accused);
  }
  for (const int pod : OnlyAccusers(counted_, self)) {
    const TimePoint counts_at = unclear_since_.emplace(pod, now).first->second + patience_;
    if (counts_at <= now) continue;
    if (!due_ || counts_at < *due_) due_ = counts_at;
    std::erase_if(counted_, [&](const auto& edge) {
      return edge.first == pod && acted_on_.count(edge) == 0;
    });
  }
  acted_on_.insert(counted_.begin(), counted_.end());
}

}  // namespace ringmaster::membership
