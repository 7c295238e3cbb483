#include "operator/planner/snapshot_index.h"

namespace ringmaster::planner {

// If two entries have the same uid, the first one counts.
SnapshotIndex::SnapshotIndex(const Snapshot& in) {
  for (const PodFacts& pod : in.pods) pods_.emplace(pod.uid, &pod);
  for (const SidecarFacts& sidecar : in.sidecars) sidecars_.emplace(sidecar.pod_uid, &sidecar);
  for (const NodeFacts& node : in.nodes) nodes_.emplace(node.name, &node);
  if (in.view != nullptr) {
    for (const membership::Pod& pod : in.view->pods) members_.insert(pod.uid);
  }
  proven_dead_.insert(in.job.status.proven_dead.begin(), in.job.status.proven_dead.end());
  accounted_.insert(in.job.status.accounted_pods.begin(), in.job.status.accounted_pods.end());
}

}  // namespace ringmaster::planner
