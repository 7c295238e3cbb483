// Questions that several phases ask of what was observed. Pure.
#pragma once

#include <string>

#include "operator/planner/snapshot.h"
#include "operator/planner/timings.h"

namespace ringmaster::planner {

// There has been a view. The lineage alone is written before the first one is.
inline bool HasHadView(const Snapshot& in) {
  const api::Status& known = in.job.status;
  return in.view != nullptr || known.world_size > 0 || membership::EpochNumber(known.epoch) > 0;
}
// Not before this does it mean anything that a sidecar has not said something.
inline Time HeardAllBy(const Snapshot& in) { return in.taken_over + kSidecarsReturn; }
const SidecarFacts* FindSidecar(const Snapshot& in, const std::string& pod_uid);
const PodFacts* FindPod(const Snapshot& in, const std::string& pod_uid);
const NodeFacts* FindNode(const Snapshot& in, const std::string& name);  // null: not known
bool InView(const Snapshot& in, const std::string& pod_uid);
// The pod can take no more part in anything: ended, or its object is gone.
bool IsGone(const Snapshot& in, const std::string& pod_uid);
// Its death is proven, now or (for a member of the view) in the status.
bool IsProvenDead(const Snapshot& in, const std::string& pod_uid);
bool IsKeptProof(const Snapshot& in, const std::string& pod_uid);  // in the status
bool IsAccounted(const Snapshot& in, const std::string& pod_uid);
bool JobHasEnded(const Snapshot& in);  // and its status says so

}  // namespace ringmaster::planner
