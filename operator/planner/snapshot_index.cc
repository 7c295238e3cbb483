#include "operator/planner/snapshot_index.h"

namespace ringmaster::planner {

// Of two with one uid the first counts.
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
