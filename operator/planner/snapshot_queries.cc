#include "operator/planner/snapshot_queries.h"

#include <algorithm>

#include "operator/planner/snapshot_index.h"
#include "operator/planner/texts.h"

namespace ringmaster::planner {
namespace {

// Without an index, as for a single question, each is looked for.
template <typename List, typename Key>
const typename List::value_type* FindIn(const List& list, Key key, const std::string& wanted) {
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.*key == wanted; });
  return at == list.end() ? nullptr : &*at;
}

}  // namespace

const SidecarFacts* FindSidecar(const Snapshot& in, const std::string& pod_uid) {
  if (in.index != nullptr) return in.index->Sidecar(pod_uid);
  return FindIn(in.sidecars, &SidecarFacts::pod_uid, pod_uid);
}

const PodFacts* FindPod(const Snapshot& in, const std::string& pod_uid) {
  if (in.index != nullptr) return in.index->Pod(pod_uid);
  return FindIn(in.pods, &PodFacts::uid, pod_uid);
}

const NodeFacts* FindNode(const Snapshot& in, const std::string& name) {
  if (in.index != nullptr) return in.index->Node(name);
  return FindIn(in.nodes, &NodeFacts::name, name);
}

bool InView(const Snapshot& in, const std::string& pod_uid) {
  if (in.index != nullptr) return in.index->IsMember(pod_uid);
  return in.view != nullptr && in.view->FindPod(pod_uid) >= 0;
}

bool IsGone(const Snapshot& in, const std::string& pod_uid) {
  const PodFacts* pod = FindPod(in, pod_uid);
  if (pod != nullptr) return pod->ended();
  // The cache may not know a new pod yet whose sidecar is connected already.
  const SidecarFacts* sidecar = FindSidecar(in, pod_uid);
  return sidecar == nullptr || !sidecar->connected;
}

bool IsProvenDead(const Snapshot& in, const std::string& pod_uid) {
  const PodFacts* pod = FindPod(in, pod_uid);
  if (pod != nullptr && pod->proven_dead) return true;
  return IsKeptProof(in, pod_uid);
}

bool IsKeptProof(const Snapshot& in, const std::string& pod_uid) {
  if (in.index != nullptr) return in.index->IsProvenDead(pod_uid);
  return Contains(in.job.status.proven_dead, pod_uid);
}

bool IsAccounted(const Snapshot& in, const std::string& pod_uid) {
  if (in.index != nullptr) return in.index->IsAccounted(pod_uid);
  return Contains(in.job.status.accounted_pods, pod_uid);
}

bool JobHasEnded(const Snapshot& in) {
  return in.job.status.Is("Succeeded") || in.job.status.Is("Failed");
}

}  // namespace ringmaster::planner
