#include "operator/scheduler/floating_pods.h"

#include <set>
#include <utility>

namespace ringmaster::scheduler {

void FloatingPods::Set(const std::string& uid, Pod pod) {
  Pod& known = pods_[uid];
  if (known.shape == pod.shape && known.refused == pod.refused) return;
  known = std::move(pod);
  tried_at_ = 0;
}

void FloatingPods::TryAgain() {
  for (auto& [uid, pod] : pods_) {
    if (std::exchange(pod.given_up, false)) tried_at_ = 0;
  }
}

void FloatingPods::PlaceAll(const NodeResources& nodes, std::uint64_t growth,
                            const TakePlace& take) {
  if (tried_at_ == growth) return;
  std::set<ShapePtr> refused;  // shapes that fit nowhere: one try per shape is enough
  std::erase_if(pods_, [&](const auto& floating) {
    const auto& [uid, pod] = floating;
    if (pod.given_up || refused.count(pod.shape) != 0) return false;
    const auto node = nodes.Place(*pod.shape);
    if (!node) {
      refused.insert(pod.shape);
      return false;
    }
    take(uid, pod, *node);
    return true;
  });
  tried_at_ = growth;
}

}  // namespace ringmaster::scheduler
