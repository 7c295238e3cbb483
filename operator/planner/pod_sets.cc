#include "operator/planner/pod_sets.h"

namespace ringmaster::planner {

PodSets::PodSets(const Snapshot& in) {
  for (const PodFacts& pod : in.pods) {
    if (pod.ended()) continue;
    (pod.leaving() ? leaving : pod.gated ? gated : active).push_back(&pod);
  }
}

bool PodSets::Stays(const PodFacts& pod) const {
  return warned.count(pod.uid) == 0 && away.count(pod.uid) == 0;
}

}  // namespace ringmaster::planner
