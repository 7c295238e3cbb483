// Phases 6 and 7: the first view, and what each sidecar should know.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "operator/api/labels.h"
#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

struct Ready {
  std::vector<membership::Candidate> candidates;
  Time last;  // when the last of them became ready
};

// Gives neighbouring ranks to pods near each other. Pods on nodes without a known place come first,
// ordered by what their sidecars know.
membership::PodOrder ByPlace(const PlanContext& plan) {
  std::map<std::string, std::string> places;  // by node
  for (const NodeFacts& node : plan.in.nodes) places[node.name] = node.place;
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

Ready FindReady(const PlanContext& plan, bool fresh) {
  Ready ready;
  // Pods that leave soon come last, so that a first view with enough other pods omits them.
  std::vector<const PodFacts*> pods = plan.active;
  std::stable_partition(pods.begin(), pods.end(),
                        [&](const PodFacts* pod) { return plan.Stays(*pod); });
  for (const PodFacts* pod : pods) {
    const SidecarFacts* sidecar = FindSidecar(plan.in, pod->uid);
    if (sidecar == nullptr || !sidecar->connected || !sidecar->ready) continue;
    if (fresh && !membership::ReadyToRestart(sidecar->candidate)) continue;
    if (ready.candidates.size() == static_cast<std::size_t>(plan.wanted)) break;
    ready.candidates.push_back(sidecar->candidate);
    ready.last = std::max(ready.last, sidecar->ready_since.value_or(plan.in.now));
  }
  return ready;
}

// The largest allowed size that is not above `most`; 0 if there is none.
int AllowedSize(const PlanContext& plan, int most) {
  const std::vector<int>& sizes = plan.in.job.spec.elastic_policy.allowed_sizes;
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
  explicit Notices(PlanContext& plan) : plan_(plan) {}

  void All(const Notice& notice) {
    for (const SidecarFacts& sidecar : plan_.in.sidecars) One(sidecar, notice);
  }
  void Of(const std::string& pod_uid, const Notice& notice) {
    if (const SidecarFacts* sidecar = FindSidecar(plan_.in, pod_uid)) One(*sidecar, notice);
  }
  void One(const SidecarFacts& sidecar, const Notice& notice) {
    if (sidecar.connected) plan_.out.notices.push_back({sidecar.pod_uid, notice});
  }

 private:
  PlanContext& plan_;
};

// Sends its view to a member that has installed none, and to a pod outside the view, which learns
// the coordinator from it.
void NotifyView(PlanContext& plan, Notices& notices) {
  const membership::ViewPtr view = plan.in.view;
  if (view == nullptr) return;
  for (const SidecarFacts& sidecar : plan.in.sidecars) {
    const bool member = InView(plan.in, sidecar.pod_uid);
    const PodFacts* pod = FindPod(plan.in, sidecar.pod_uid);
    if (pod != nullptr && pod->leaving() && !member) continue;
    // A view that is being replaced by a recovery takes no new pods: the pod may be in the next
    // one.
    const bool given_up = plan.in.lineage > membership::EpochLineage(view->epoch);
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

void NotifyDrains(PlanContext& plan, Notices& notices) {
  for (const PodFacts* pod : plan.leaving) {
    // The pod is not marked yet, so it has no deadline; the next reconcile will have one.
    if (!pod->drain_since && !pod->deleting) continue;
    const DrainNotice drain{
        {pod->uid}, pod->drain_reason.empty() ? "Deleted" : pod->drain_reason, LeaveBy(*pod)};
    const std::string coordinator = plan.in.view == nullptr ? "" : plan.in.view->coordinator;
    if (coordinator != pod->uid) notices.Of(coordinator, drain);
    notices.Of(pod->uid, drain);
  }
}

void NotifyGone(PlanContext& plan, Notices& notices) {
  if (plan.in.view == nullptr) return;
  for (const membership::Pod& pod : plan.in.view->pods) {
    if (!IsGone(plan.in, pod.uid)) continue;
    const PodFacts* facts = FindPod(plan.in, pod.uid);
    const bool proof = IsProvenDead(plan.in, pod.uid);
    const bool by_kubelet = facts == nullptr || facts->all_terminated;
    notices.All(PodGoneNotice{pod.uid, !proof       ? "PodGone"
                                       : by_kubelet ? "Terminated"
                                                    : facts->proof});
  }
}

// Records the address at which people and the command line find the sidecar.
void WriteAddresses(PlanContext& plan) {
  for (const SidecarFacts& sidecar : plan.in.sidecars) {
    const PodFacts* pod = FindPod(plan.in, sidecar.pod_uid);
    if (pod == nullptr || !sidecar.connected || sidecar.http_address.empty()) continue;
    if (pod->http == sidecar.http_address) continue;
    plan.out.annotations.push_back({pod->name, api::kHttpAnnotation, sidecar.http_address});
  }
}

}  // namespace

membership::ViewPtr BootstrapOf(PlanContext& plan, std::uint64_t lineage) {
  const bool again = lineage > 1;
  Ready ready = FindReady(plan, again);
  const auto min = static_cast<std::uint32_t>(plan.in.job.spec.elastic_policy.min_replicas);
  if (ready.candidates.size() < min) return nullptr;
  const bool all = static_cast<int>(ready.candidates.size()) >= plan.wanted;
  if (!all) {
    // Takes as many of the ready pods as form an allowed size; the others join when they complete
    // the next size.
    const int size = AllowedSize(plan, static_cast<int>(ready.candidates.size()));
    if (size < static_cast<int>(min)) return nullptr;
    ready.candidates.resize(static_cast<std::size_t>(size));
  }
  if (!all && plan.in.now < ready.last + kSettle) {
    plan.LookAgainAt(ready.last + kSettle);
    return nullptr;
  }
  if (again) {
    return membership::RestartView(lineage, membership::EpochOf(plan.in.view), ready.candidates,
                                   min, ByPlace(plan));
  }
  return std::make_shared<const membership::View>(
      membership::BootstrapView(ready.candidates, min, ByPlace(plan)));
}

void MakeView(PlanContext& plan) {
  // Once a first view may have been written, no second one is made: pods may train in the first.
  const bool begun = plan.in.job.status.epoch != 0 || plan.in.lineage != 0;
  if (plan.finishing || plan.in.view != nullptr || begun) return;
  plan.out.first_view = BootstrapOf(plan, 1);
}

void NotifyThatAllLeave(PlanContext& plan) {
  DrainNotice drain{.reason = SuspendedReason(plan)};
  if (plan.in.view != nullptr) {
    for (const membership::Pod& member : plan.in.view->pods) drain.pod_uids.push_back(member.uid);
  }
  std::optional<std::int64_t> first;
  for (const PodFacts& pod : plan.in.pods) {
    if (pod.ended()) continue;
    if (!InView(plan.in, pod.uid)) drain.pod_uids.push_back(pod.uid);
    const auto grace = std::chrono::seconds(pod.grace_seconds);
    const std::int64_t end = pod.delete_at ? LeaveBy(pod) : UnixMs(plan.in.now + grace);
    first = std::min(first.value_or(end), end);
  }
  if (!first) return;
  drain.deadline_unix_ms = *first;
  Notices(plan).All(drain);
}

void NotifySidecars(PlanContext& plan) {
  Notices notices(plan);
  WriteAddresses(plan);
  const int min = plan.in.job.spec.elastic_policy.min_replicas;
  notices.All(
      TargetNotice{static_cast<std::uint32_t>(min), static_cast<std::uint32_t>(plan.wanted)});
  if (plan.finishing) return notices.All(FinishNotice{"all ranks agreed to end"});
  NotifyView(plan, notices);
  NotifyDrains(plan, notices);
  NotifyGone(plan, notices);
}

}  // namespace ringmaster::planner
