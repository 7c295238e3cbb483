// Phases 6 and 7: the first view, and what each sidecar should know.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "operator/api/labels.h"
#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

struct Ready {
  std::vector<membership::Candidate> candidates;
  Time last;  // when the last of them became ready
};

// Gives neighbouring ranks to pods near each other. Pods on nodes without a known place come first,
// ordered by what their sidecars know.
membership::PodOrder ByPlace(const Snapshot& in) {
  std::map<std::string, std::string> places;  // by node
  for (const NodeFacts& node : in.nodes) places[node.name] = node.place;
  return [places = std::move(places)](const membership::Pod& a, const membership::Pod& b) {
    const auto place = [&](const membership::Pod& pod) {
      const auto at = places.find(pod.node);
      return at == places.end() ? std::string() : at->second;
    };
    const std::string of_a = place(a), of_b = place(b);
    if (membership::NaturalLess(of_a, of_b)) return true;
    if (membership::NaturalLess(of_b, of_a)) return false;
    return membership::TopologyLess(a, b);
  };
}

Ready FindReady(const Snapshot& in, const JobState& state, const PodSets& pods, bool fresh) {
  Ready ready;
  // Pods that are about to leave come last, so that a first view does without them if it has enough
  // others.
  std::vector<const PodFacts*> in_order = pods.active;
  std::stable_partition(in_order.begin(), in_order.end(),
                        [&](const PodFacts* pod) { return pods.Stays(*pod); });
  for (const PodFacts* pod : in_order) {
    const SidecarFacts* sidecar = FindSidecar(in, pod->uid);
    if (sidecar == nullptr || !sidecar->connected || !sidecar->ready) continue;
    if (fresh && !membership::ReadyToRestart(sidecar->candidate)) continue;
    if (ready.candidates.size() == static_cast<std::size_t>(state.wanted)) break;
    ready.candidates.push_back(sidecar->candidate);
    ready.last = std::max(ready.last, sidecar->ready_since.value_or(in.now));
  }
  return ready;
}

// The largest allowed size that is not above `most`; 0 if there is none.
int AllowedSize(const Snapshot& in, int most) {
  const std::vector<int>& sizes = in.job.spec.elastic_policy.allowed_sizes;
  if (sizes.empty()) return most;
  int best = 0;
  for (const int size : sizes) {
    if (size <= most) best = std::max(best, size);
  }
  return best;
}

std::int64_t UnixMs(Time time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

class Notices {
 public:
  Notices(const Snapshot& in, DecisionDraft& out) : in_(in), out_(out) {}

  void All(const Notice& notice) {
    for (const SidecarFacts& sidecar : in_.sidecars) One(sidecar, notice);
  }
  void Of(const std::string& pod_uid, const Notice& notice) {
    if (const SidecarFacts* sidecar = FindSidecar(in_, pod_uid)) One(*sidecar, notice);
  }
  void One(const SidecarFacts& sidecar, const Notice& notice) {
    if (sidecar.connected) out_.notices.push_back({sidecar.pod_uid, notice});
  }

 private:
  const Snapshot& in_;
  DecisionDraft& out_;
};

// Sends its view to a member that has installed none, and to a pod outside the view, which learns
// the coordinator from it.
void NotifyView(const Snapshot& in, Notices& notices) {
  const membership::ViewPtr view = in.view;
  if (view == nullptr) return;
  for (const SidecarFacts& sidecar : in.sidecars) {
    const bool member = InView(in, sidecar.pod_uid);
    const PodFacts* pod = FindPod(in, sidecar.pod_uid);
    if (pod != nullptr && pod->leaving() && !member) continue;
    // A view that is being replaced by a recovery takes no new pods: the pod may be in the next
    // one.
    const bool given_up = in.lineage > membership::EpochLineage(view->epoch);
    if (!member && given_up) continue;
    // The sidecar's address is written on its pod first, so that a new operator can see which pods
    // may be in a view.
    if (pod != nullptr && !member && pod->http != sidecar.http_address) continue;
    const bool behind =  // epoch 0, before the first installed view, has lineage 0
        membership::EpochLineage(sidecar.epoch) < membership::EpochLineage(view->epoch);
    if (!member || behind) notices.One(sidecar, ViewDecidedNotice{view});
  }
}

// When the pod's processes are killed: at the end of its drain's or its deletion's grace period. 0:
// unknown.
std::int64_t LeaveBy(const PodFacts& pod) {
  std::optional<Time> end = pod.delete_at;
  if (pod.drain_since) {
    const Time drained = *pod.drain_since + std::chrono::seconds(pod.grace_seconds);
    if (!end || drained < *end) end = drained;
  }
  return end ? UnixMs(*end) : 0;
}

bool IsToldToLeave(const PodFacts& pod) { return pod.drain_since || pod.deleting; }

// The members of the view, if all of them leave; else none. Each has to know of the others: it
// would wait for them to take over, in vain, until its time is up, and be stopped within a step.
Uids MembersThatAllLeave(const Snapshot& in) {
  std::vector<std::string> uids;
  if (in.view == nullptr) return UidsOf({});
  for (const membership::Pod& member : in.view->pods) {
    const PodFacts* pod = FindPod(in, member.uid);
    if (pod != nullptr && !pod->ended() && !IsToldToLeave(*pod)) return UidsOf({});
    uids.push_back(member.uid);
  }
  return UidsOf(std::move(uids));
}

void NotifyDrains(const Snapshot& in, const PodSets& pods, Notices& notices) {
  const Uids together = MembersThatAllLeave(in);
  for (const PodFacts* pod : pods.leaving) {
    // The pod is not marked yet, so it has no deadline; the next reconcile will have one.
    if (!IsToldToLeave(*pod)) continue;
    const std::string reason = pod->drain_reason.empty() ? "Deleted" : pod->drain_reason;
    if (!together->empty() && InView(in, pod->uid)) {
      notices.Of(pod->uid, DrainNotice{together, reason, LeaveBy(*pod)});
      continue;
    }
    const DrainNotice drain{UidsOf({pod->uid}), reason, LeaveBy(*pod)};
    const std::string coordinator = in.view == nullptr ? "" : in.view->coordinator;
    if (coordinator != pod->uid) notices.Of(coordinator, drain);
    notices.Of(pod->uid, drain);
  }
}

void NotifyGone(const Snapshot& in, Notices& notices) {
  if (in.view == nullptr) return;
  std::vector<GonePod> gone;
  for (const membership::Pod& pod : in.view->pods) {
    if (!IsGone(in, pod.uid)) continue;
    const PodFacts* facts = FindPod(in, pod.uid);
    const bool proof = IsProvenDead(in, pod.uid);
    const bool by_kubelet = facts == nullptr || facts->all_terminated;
    gone.push_back({pod.uid, !proof ? "PodGone" : by_kubelet ? "Terminated" : facts->proof});
  }
  notices.All(PodsGoneOf(std::move(gone)));
}

// Records the address at which people and the command line find the sidecar.
void WriteAddresses(const Snapshot& in, DecisionDraft& out) {
  for (const SidecarFacts& sidecar : in.sidecars) {
    const PodFacts* pod = FindPod(in, sidecar.pod_uid);
    if (pod == nullptr || !sidecar.connected || sidecar.http_address.empty()) continue;
    if (pod->http == sidecar.http_address) continue;
    out.annotations.push_back({pod->name, api::kHttpAnnotation, sidecar.http_address});
  }
}

}  // namespace

membership::Sizes SizesOf(const Snapshot& in) {
  const api::ElasticPolicy& elastic = in.job.spec.elastic_policy;
  membership::Sizes sizes{static_cast<std::uint32_t>(elastic.min_replicas), {}};
  for (const int pods : elastic.allowed_sizes) {
    sizes.allowed.push_back(static_cast<std::uint32_t>(pods));
  }
  std::sort(sizes.allowed.begin(), sizes.allowed.end());
  return sizes;
}

std::size_t GoesOnWith(const Snapshot& in) {
  if (in.view == nullptr || in.view->train) return 0;
  return SizesOf(in).ShrinksTo(in.view->pods.size());
}

membership::ViewPtr BootstrapOf(const Snapshot& in, const JobState& state, const PodSets& pods,
                                DecisionDraft& out, std::uint64_t lineage) {
  const bool again = lineage > 1;
  Ready ready = FindReady(in, state, pods, again);
  const auto min = static_cast<std::uint32_t>(in.job.spec.elastic_policy.min_replicas);
  if (ready.candidates.size() < min) return nullptr;
  const bool all = static_cast<int>(ready.candidates.size()) >= state.wanted;
  if (!all) {
    // Takes as many of the ready pods as form an allowed size; the others join when they complete
    // the next size.
    const int size = AllowedSize(in, static_cast<int>(ready.candidates.size()));
    if (size < static_cast<int>(min)) return nullptr;
    ready.candidates.resize(static_cast<std::size_t>(size));
  }
  if (!all && in.now < ready.last + kSettle) {
    out.LookAgainAt(ready.last + kSettle);
    return nullptr;
  }
  if (again) {
    return membership::RestartView(lineage, membership::EpochOf(in.view), ready.candidates, min,
                                   ByPlace(in));
  }
  return std::make_shared<const membership::View>(
      membership::BootstrapView(ready.candidates, min, ByPlace(in)));
}

void MakeView(const Snapshot& in, const JobState& state, const PodSets& pods, DecisionDraft& out) {
  // Once a first view may have been written, no second one is made: pods may train in the first.
  const bool begun = in.job.status.epoch != 0 || in.lineage != 0 || in.told_view.epoch != 0;
  if (state.finishing || in.view != nullptr || begun) return;
  out.first_view = BootstrapOf(in, state, pods, out, 1);
}

void NotifyThatAllLeave(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  std::vector<std::string> uids;
  if (in.view != nullptr) {
    for (const membership::Pod& member : in.view->pods) uids.push_back(member.uid);
  }
  std::optional<std::int64_t> first;
  for (const PodFacts& pod : in.pods) {
    if (pod.ended()) continue;
    if (!InView(in, pod.uid)) uids.push_back(pod.uid);
    const auto grace = std::chrono::seconds(pod.grace_seconds);
    const std::int64_t end = pod.delete_at ? LeaveBy(pod) : UnixMs(in.now + grace);
    first = std::min(first.value_or(end), end);
  }
  if (!first) return;
  const std::string reason = state.outcome.ended() ? "JobEnded" : SuspendedReason(in, state);
  Notices(in, out).All(DrainNotice{UidsOf(std::move(uids)), reason, *first, /*all_leave=*/true});
}

void NotifySidecars(const Snapshot& in, const JobState& state, const PodSets& pods,
                    DecisionDraft& out) {
  Notices notices(in, out);
  WriteAddresses(in, out);
  notices.All(TargetNotice{SizesOf(in), static_cast<std::uint32_t>(state.wanted)});
  AskForView(in, out);
  if (state.finishing) return notices.All(FinishNotice{"all ranks agreed to end"});
  NotifyView(in, notices);
  NotifyDrains(in, pods, notices);
  NotifyGone(in, notices);
}

}  // namespace ringmaster::planner
