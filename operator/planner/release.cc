// Phase 8: which deleted pods may disappear. Our finalizer keeps the object of a pod, and with it
// the kubelet's last report; it is removed when the death is proven or doesn't matter.
#include <fmt/format.h>

#include <algorithm>

#include "operator/api/labels.h"
#include "operator/planner/phases.h"
#include "operator/planner/proof.h"

namespace ringmaster::planner {
namespace {

// How long after its grace period a deleted pod may exist before we report why.
constexpr std::chrono::seconds kHeldPatience{10};

// The pod was never told of a view: the annotation is written before its sidecar learns of one.
bool NeverTookPart(const Snapshot& in, const PodFacts& pod) {
  return pod.http.empty() && FindSidecar(in, pod.uid) == nullptr && !InView(in, pod.uid);
}

// Empty: the finalizer stays.
std::string WhyRelease(const Snapshot& in, const PodFacts& pod) {
  if (JobHasEnded(in)) return "the job has ended";
  if (!pod.deleting) return "";
  if (!pod.scheduled) return "it never had a node";
  if (NeverTookPart(in, pod)) return "it never took part";
  if (!pod.proven_dead) return "";
  // A member's proof may be needed until there is a view without it, so it first goes into the
  // status, which outlives the object.
  const bool is_kept = IsKeptProof(in, pod.uid);
  return InView(in, pod.uid) && !is_kept ? "" : pod.proof;
}

// Says why nothing proves the death so far, and what would.
std::string WhyHeld(const Snapshot& in, const PodFacts& pod) {
  const NodeFacts* node = FindNode(in, pod.node);
  const char* state = node == nullptr ? "is not known here (no such node, or no rights to read it)"
                      : node->ready   ? "is Ready: its kubelet has to end the pod"
                                      : "is not Ready";
  return fmt::format(
      "pod {} is deleted, but nothing proves that it is dead; node {} {}. It goes when the kubelet "
      "says that its containers have ended, the node has rebooted, or the node is tainted {}",
      pod.name, pod.node, state, kOutOfServiceTaint);
}

void AddHeldEvent(const Snapshot& in, DecisionDraft& out, const PodFacts& pod) {
  if (!pod.deleting || pod.proven_dead) return;
  const Time late = pod.delete_at.value_or(in.now) + kHeldPatience;
  if (in.now < late) return out.LookAgainAt(late);
  const std::string why = WhyHeld(in, pod);
  if (pod.held_why == why) return;
  out.annotations.push_back({pod.name, api::kHeldAnnotation, why});
  out.AddEvent(true, "WaitingForProofOfDeath", why, pod.name);
}

void KeepProofs(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  auto& kept = out.status.proven_dead;
  if (state.outcome.ended()) return kept.clear();
  std::erase_if(kept, [&](const std::string& uid) { return !InView(in, uid); });
  for (const PodFacts& pod : in.pods) {
    // Further members keep their objects, and so their proofs, until there is a view without the
    // first.
    if (kept.size() >= kMostUids) return;
    if (!pod.proven_dead || !InView(in, pod.uid)) continue;
    if (!IsKeptProof(in, pod.uid)) kept.push_back(pod.uid);
  }
}

// Records a proof that may disappear (a taint) in an annotation.
void WriteProof(DecisionDraft& out, const PodFacts& pod) {
  if (!pod.proven_dead || pod.all_terminated || !pod.vouched.empty()) return;
  out.annotations.push_back({pod.name, api::kProvenAnnotation, pod.proof});
  out.AddEvent(false, "ProvenDead", fmt::format("pod {} is dead: {}", pod.name, pod.proof),
               pod.name);
}

// Records the boot of a pod's machine once its sidecar and the node's object name the same boot id.
// From then on another boot id of this machine proves that the pod is dead. The node's object alone
// would not do, because its status may be older than the pod.
void WriteBoot(const Snapshot& in, DecisionDraft& out, const SidecarFacts& sidecar) {
  const PodFacts* pod = FindPod(in, sidecar.pod_uid);
  if (pod == nullptr || !sidecar.connected || sidecar.boot_id.empty()) return;
  const NodeFacts* node = FindNode(in, pod->node);
  if (node == nullptr || node->boot_id != sidecar.boot_id) return;
  if (pod->boot == node->BootRecord()) return;
  out.annotations.push_back({pod->name, api::kBootAnnotation, node->BootRecord()});
}

}  // namespace

void Release(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  KeepProofs(in, state, out);
  for (const SidecarFacts& sidecar : in.sidecars) WriteBoot(in, out, sidecar);
  for (const PodFacts& pod : in.pods) {
    if (!JobHasEnded(in)) WriteProof(out, pod);
    if (!pod.has_finalizer) continue;
    if (const std::string why = WhyRelease(in, pod); !why.empty()) {
      const bool at_once = pod.deleting && pod.proven_dead && !pod.all_terminated;
      const bool in_any_version = JobHasEnded(in) || pod.proven_dead;
      out.releases.push_back({pod.name, pod.uid, why, at_once, in_any_version ? "" : pod.version});
    } else {
      AddHeldEvent(in, out, pod);
    }
  }
}

}  // namespace ringmaster::planner
