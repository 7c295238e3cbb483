#include "operator/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/plan_context.h"
#include "operator/planner/snapshot_index.h"

namespace ringmaster::planner {

std::string PodName(const std::string& job, int index) {
  return fmt::format("{}-worker-{}", job, index);
}

std::string Plural(std::size_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

void PlanContext::LookAgainAt(Time time) {
  // A little later than needed, so that the next look doesn't come too early.
  const auto wait = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(time - in.now),
                             std::chrono::milliseconds(0)) +
                    std::chrono::milliseconds(10);
  if (!out.look_again || wait < *out.look_again) out.look_again = wait;
}

bool PlanContext::Stays(const PodFacts& pod) const {
  return warned.count(pod.uid) == 0 && away.count(pod.uid) == 0;
}

void PlanContext::AddEvent(bool warning, std::string reason, std::string message, std::string pod) {
  out.events.push_back({warning, std::move(reason), std::move(message), std::move(pod)});
}

std::string Listed(const std::vector<std::string>& texts, const char* between) {
  constexpr std::size_t kMost = 4;
  const std::size_t shown = std::min(texts.size(), kMost);
  std::string text = fmt::format("{}", fmt::join(texts.begin(), texts.begin() + shown, between));
  if (shown < texts.size()) text += fmt::format(" and {} more", texts.size() - shown);
  return text;
}

std::string Names(const std::vector<std::string>& names) { return Listed(names, ", "); }

namespace {

// Searches the list; used for a single question, when there is no index.
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
  // The cache may not have a new pod yet whose sidecar is already connected.
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

bool Contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// The template may have changed: pods of the old and the new one must not meet in one ring. A pod
// whose time to leave is over is not waited for.
bool PodsStillEnd(PlanContext& plan) {
  bool waits = false;
  for (const PodFacts& pod : plan.in.pods) {
    if (pod.all_terminated || pod.proven_dead || !pod.scheduled || !pod.delete_at) continue;
    if (plan.in.now >= *pod.delete_at) continue;
    plan.LookAgainAt(*pod.delete_at);
    waits = true;
  }
  return waits;
}

Decision Plan(const Snapshot& snapshot) {
  const WithIndex index(snapshot);
  PlanContext plan{.in = snapshot};
  plan.out.status = snapshot.job.status;
  plan.wanted = snapshot.job.WantedPods();
  ObserveQueue(plan);
  plan.gives_all = GivesAll(plan);
  plan.suspended = snapshot.job.Suspended() || plan.queued || plan.gives_all ||
                   (snapshot.job.status.Is("Suspended") && PodsStillEnd(plan));
  for (const PodFacts& pod : snapshot.pods) {
    if (pod.ended()) continue;
    (pod.leaving() ? plan.leaving : plan.active).push_back(&pod);
  }
  ObserveNodes(plan);
  CountEnds(plan);
  EvaluateOutcome(plan);
  CleanUp(plan);
  if (!plan.outcome.ended() && plan.suspended) NotifyThatAllLeave(plan);
  if (plan.gives_all) OfferAll(plan);
  if (!plan.outcome.ended() && !plan.suspended) {
    if (!GiveBack(plan)) {
      Size(plan);
      Admit(plan);
    }
    MakeView(plan);
    RecoverFromQuorumLoss(plan);
    NotifySidecars(plan);
  }
  Release(plan);
  WriteStatus(plan);
  return std::move(plan.out);
}

}  // namespace ringmaster::planner
