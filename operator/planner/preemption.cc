// Part of phase 4: pods that the job can do without leave for more important jobs, as in any drain:
// at a step boundary, with nothing lost. Their replacements stand in line until there is room
// again.
//
// If all pods are demanded, the job gives up all of them, as if it were suspended, and stands in
// line again when they have gone.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

constexpr char kPreempted[] = "Preempted";
// Reasons of the condition of a job that gives up all its pods: they leave; they have left.
constexpr char kJobLeaves[] = "JobLeaves", kJobWaits[] = "JobWaits";

// The pods with which the job trains or, before the first view, is about to train.
bool Trains(const PlanContext& plan, const PodFacts& pod) {
  return plan.in.view == nullptr || InView(plan.in, pod.uid);
}

// Pods that could leave: they have a node, and take resources there. Pods that don't train yet come
// first, then those with the highest indexes, as in a scale-down.
std::vector<const PodFacts*> Givable(const PlanContext& plan) {
  std::vector<const PodFacts*> pods;
  for (const PodFacts* pod : plan.active) {
    if (pod->scheduled && plan.Stays(*pod)) pods.push_back(pod);
  }
  std::sort(pods.begin(), pods.end(), [&](const PodFacts* a, const PodFacts* b) {
    const bool a_trains = Trains(plan, *a), b_trains = Trains(plan, *b);
    return a_trains != b_trains ? b_trains : a->index > b->index;
  });
  return pods;
}

int CountTraining(const PlanContext& plan, const std::vector<const PodFacts*>& pods) {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(),
                                        [&](const PodFacts* pod) { return Trains(plan, *pod); }));
}

// Reports which pods leave for which job.
using Gifts = std::vector<std::pair<const scheduler::PodDemand*, std::vector<std::string>>>;

void Explain(PlanContext& plan, const Gifts& gifts) {
  const int stay = CountTraining(plan, Givable(plan));
  std::string text;
  for (const auto& [demand, pods] : gifts) {
    text +=
        fmt::format("{}{} leave{} for job {} of priority {}, which needs {} to start",
                    text.empty() ? "" : "; ", Names(pods), pods.size() == 1 ? "s" : "", demand->job,
                    demand->priority, Plural(static_cast<std::size_t>(demand->needs), "pod"));
  }
  plan.preempted = fmt::format("{}; {} stay{}", text, Plural(static_cast<std::size_t>(stay), "pod"),
                               stay == 1 ? "s" : "");
  plan.AddEvent(false, kPreempted, plan.preempted);
}

bool IsDemanded(const PlanContext& plan, const std::string& uid) {
  const auto& demands = plan.in.demands;
  return std::any_of(demands.begin(), demands.end(),
                     [&](const auto& demand) { return demand.uid == uid; });
}

// The demanded pods that are about to leave: until the scheduler's side sees them leave, it counts
// on them only as long as they are offered.
std::vector<const PodFacts*> Given(const PlanContext& plan) {
  std::vector<const PodFacts*> pods;
  for (const PodFacts& pod : plan.in.pods) {
    if (!pod.scheduled || pod.ended() || !IsDemanded(plan, pod.uid)) continue;
    const auto& drains = plan.out.drains;
    if (pod.leaving() || std::any_of(drains.begin(), drains.end(),
                                     [&](const auto& drain) { return drain.uid == pod.uid; })) {
      pods.push_back(&pod);
    }
  }
  return pods;
}

bool HasReason(const PlanContext& plan, const char* reason) {
  const api::Condition* before = plan.in.job.status.Find(kPreempted);
  return before != nullptr && before->status && before->reason == reason;
}

// The ranks have agreed to end, so the job's resources will be free soon anyway.
bool IsAboutToEnd(const Snapshot& in) {
  return JobHasEnded(in) || in.job.status.finished_epoch != 0 ||
         std::any_of(in.sidecars.begin(), in.sidecars.end(),
                     [](const SidecarFacts& sidecar) { return sidecar.finished_epoch != 0; });
}

const scheduler::PodDemand* DemandForAll(const Snapshot& in) {
  for (const scheduler::PodDemand& demand : in.demands) {
    const PodFacts* pod = demand.whole ? FindPod(in, demand.uid) : nullptr;
    if (pod != nullptr && !pod->ended()) return &demand;
  }
  return nullptr;
}

std::string WhyAllLeave(const Snapshot& in) {
  if (const scheduler::PodDemand* demand = DemandForAll(in)) {
    return fmt::format(
        "all pods leave for job {} of priority {}, which needs {} to start; this job stands in "
        "line again and then starts from its checkpoint",
        demand->job, demand->priority, Plural(static_cast<std::size_t>(demand->needs), "pod"));
  }
  return in.job.status.Find(kPreempted)->message;
}

// Returns true if the condition now describes a job that gives up all its pods, or has done so.
bool SetWholePreempted(PlanContext& plan) {
  if (plan.gives_all) {
    const std::string why = WhyAllLeave(plan.in);
    if (!HasReason(plan, kJobLeaves)) plan.AddEvent(true, kPreempted, why);
    SetCondition(plan, kPreempted, true, kJobLeaves, why);
    return true;
  }
  if (!HasReason(plan, kJobLeaves) && !HasReason(plan, kJobWaits)) return false;
  if (plan.outcome.ended() || plan.suspended) return false;
  const auto placed = std::count_if(plan.active.begin(), plan.active.end(),
                                    [](const PodFacts* pod) { return pod->scheduled; });
  if (placed < LeastTogether(plan)) {
    SetCondition(plan, kPreempted, true, kJobWaits, plan.in.job.status.Find(kPreempted)->message);
  } else {
    SetCondition(plan, kPreempted, false, "StartsAgain", "the job has pods to start with again");
  }
  return true;
}

bool IsBeingRebuiltFromLoss(const Snapshot& in) {
  return in.view != nullptr && in.lineage > membership::EpochLineage(in.view->epoch);
}

}  // namespace

bool GivesAll(PlanContext& plan) {
  if (plan.in.job.Suspended() || JobHasEnded(plan.in)) return false;
  if (HasReason(plan, kJobLeaves) && PodsStillEnd(plan)) return true;
  return !IsBeingRebuiltFromLoss(plan.in) && !IsAboutToEnd(plan.in) && DemandForAll(plan.in);
}

// Until the pods are seen to leave, the admission counts on them only as long as they are offered.
void OfferAll(PlanContext& plan) {
  scheduler::Holding holding{.least = LeastTogether(plan), .whole = true};
  for (const PodFacts& pod : plan.in.pods) {
    if (pod.scheduled && !pod.ended()) holding.pods.push_back({pod.uid, pod.name, true});
  }
  plan.out.holding = std::move(holding);
}

void YieldToOthers(PlanContext& plan) {
  if (IsBeingRebuiltFromLoss(plan.in)) return;
  const std::vector<const PodFacts*> givable = Givable(plan);
  int more_than_least = CountTraining(plan, givable) - LeastTogether(plan);
  Gifts gifts;
  for (const PodFacts* pod : givable) {
    const auto& demands = plan.in.demands;
    const auto demand = std::find_if(demands.begin(), demands.end(),
                                     [&](const auto& one) { return one.uid == pod->uid; });
    if (demand == demands.end()) continue;
    // The demand may have been decided before a pod was lost.
    if (Trains(plan, *pod) && more_than_least-- <= 0) continue;
    Drain(plan, pod, kPreempted);
    auto gift = std::find_if(gifts.begin(), gifts.end(),
                             [&](const auto& one) { return one.first->job == demand->job; });
    if (gift == gifts.end()) gift = gifts.insert(gift, {&*demand, {}});
    gift->second.push_back(pod->name);
  }
  if (!gifts.empty()) Explain(plan, gifts);
}

void OfferPods(PlanContext& plan) {
  if (IsBeingRebuiltFromLoss(plan.in)) return;
  const std::vector<const PodFacts*> givable = Givable(plan);
  scheduler::Holding holding{
      .least = LeastTogether(plan),
      .whole = !IsAboutToEnd(plan.in),
      .since = api::ParseTime(plan.in.job.status.running_since).value_or(Time::max())};
  if (CountTraining(plan, givable) < holding.least) return;
  for (const PodFacts* pod : givable) {
    holding.pods.push_back({pod->uid, pod->name, Trains(plan, *pod)});
  }
  for (const PodFacts* pod : Given(plan)) holding.pods.push_back({pod->uid, pod->name, false});
  for (const int size : plan.in.job.spec.elastic_policy.allowed_sizes) {
    if (size >= holding.least) holding.sizes.push_back(size);
  }
  std::sort(holding.sizes.begin(), holding.sizes.end());
  plan.out.holding = std::move(holding);
}

void SetPreempted(PlanContext& plan) {
  if (SetWholePreempted(plan)) return;
  if (!plan.preempted.empty()) {
    return SetCondition(plan, kPreempted, true, "MoreImportantJob", plan.preempted);
  }
  if (!plan.in.job.status.Is(kPreempted)) return;
  if (plan.outcome.ended() || plan.suspended || plan.finishing) {
    return SetCondition(plan, kPreempted, false, "NotRunning", "the job trains no more");
  }
  const auto placed = std::count_if(plan.active.begin(), plan.active.end(),
                                    [](const PodFacts* pod) { return pod->scheduled; });
  if (!plan.in.demands.empty() || placed < plan.wanted) return;
  SetCondition(plan, kPreempted, false, "GrownBack", "the job has as many pods as it asks for");
}

bool WaitsSincePreempted(const api::Status& status) {
  const api::Condition* preempted = status.Find(kPreempted);
  return preempted != nullptr && preempted->status && preempted->reason == kJobWaits;
}

std::string WhoLeaves(const Snapshot& in) {
  std::set<std::string> whole;
  std::vector<std::pair<std::string, std::vector<std::string>>> by_job;
  for (const auto& leaver : in.gang_fit->leavers) {
    auto job = std::find_if(by_job.begin(), by_job.end(),
                            [&](const auto& one) { return one.first == leaver.job; });
    if (job == by_job.end()) job = by_job.insert(job, {leaver.job, {}});
    job->second.push_back(leaver.pod);
    if (leaver.whole) whole.insert(leaver.job);
  }
  std::string text;
  for (const auto& [job, pods] : by_job) {
    text += fmt::format("{}{} of job {}{}", text.empty() ? "" : ", ", Names(pods), job,
                        whole.count(job) != 0 ? " (all that it has)" : "");
  }
  return fmt::format("{} of less important jobs leave{} for it: {}",
                     Plural(in.gang_fit->leavers.size(), "pod"),
                     in.gang_fit->leavers.size() == 1 ? "s" : "", text);
}

}  // namespace ringmaster::planner
