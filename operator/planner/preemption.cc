// Part of phase 4: pods that the job can do without leave for more important jobs, as in any drain:
// at a step boundary, with nothing lost. Their replacements stand in line until there is room
// again.
//
// If all pods are demanded, the job gives up all of them, as if it were suspended, and stands in
// line again when they have gone.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

constexpr std::size_t kMostJobsNamed = 5;
// The reason of the condition of a job that has given up all its pods.
constexpr char kJobWaits[] = "JobWaits";

// The pods with which the job trains or, before the first view, is about to train.
bool Trains(const Snapshot& in, const PodFacts& pod) {
  return in.view == nullptr || InView(in, pod.uid);
}

// Pods that could leave: they have a node, and take resources there. Pods that don't train yet come
// first, then those with the highest indexes, as in a scale-down.
std::vector<const PodFacts*> Givable(const Snapshot& in, const PodSets& pods) {
  std::vector<const PodFacts*> givable;
  for (const PodFacts* pod : pods.active) {
    if (pod->scheduled && pods.Stays(*pod)) givable.push_back(pod);
  }
  std::sort(givable.begin(), givable.end(), [&](const PodFacts* a, const PodFacts* b) {
    const bool a_trains = Trains(in, *a), b_trains = Trains(in, *b);
    return a_trains != b_trains ? b_trains : a->index > b->index;
  });
  return givable;
}

// Also on nodes that are to go.
std::vector<const PodFacts*> Training(const Snapshot& in, const PodSets& pods) {
  std::vector<const PodFacts*> training;
  for (const PodFacts* pod : pods.active) {
    if (pod->scheduled && !pods.away.contains(pod->uid) && Trains(in, *pod))
      training.push_back(pod);
  }
  return training;
}

int CountTraining(const Snapshot& in, const std::vector<const PodFacts*>& pods) {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(),
                                        [&](const PodFacts* pod) { return Trains(in, *pod); }));
}

// Reports which pods leave for which job.
using Gifts = std::vector<std::pair<const scheduler::PodDemand*, std::vector<std::string>>>;

void Explain(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
             const Gifts& gifts) {
  const int stay = CountTraining(in, Givable(in, pods));
  std::string text;
  for (const auto& [demand, pods] : gifts) {
    text +=
        fmt::format("{}{} leave{} for job {} of priority {}, which needs {} to start",
                    text.empty() ? "" : "; ", Names(pods), pods.size() == 1 ? "s" : "", demand->job,
                    demand->priority, Plural(static_cast<std::size_t>(demand->needs), "pod"));
  }
  why.preempted = fmt::format("{}; {} stay{}", text, Plural(static_cast<std::size_t>(stay), "pod"),
                              stay == 1 ? "s" : "");
  out.AddEvent(false, kPreempted, why.preempted);
}

bool IsDemanded(const Snapshot& in, const std::string& uid) {
  const auto& demands = in.demands;
  return std::any_of(demands.begin(), demands.end(),
                     [&](const auto& demand) { return demand.uid == uid; });
}

// The demanded pods that are about to leave: until the scheduler's side sees them leave, it counts
// on them only as long as they are offered.
std::vector<const PodFacts*> Given(const Snapshot& in, DecisionDraft& out) {
  std::vector<const PodFacts*> pods;
  for (const PodFacts& pod : in.pods) {
    if (!pod.scheduled || pod.ended() || !IsDemanded(in, pod.uid)) continue;
    const auto& drains = out.drains;
    if (pod.leaving() || std::any_of(drains.begin(), drains.end(),
                                     [&](const auto& drain) { return drain.uid == pod.uid; })) {
      pods.push_back(&pod);
    }
  }
  return pods;
}

bool HasReason(const Snapshot& in, const char* reason) {
  const api::Condition* before = in.job.status.Find(kPreempted);
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
bool SetWholePreempted(const Snapshot& in, const JobState& state, const PodSets& pods,
                       DecisionDraft& out) {
  if (state.gives_all) {
    const std::string why = WhyAllLeave(in);
    if (!HasReason(in, kJobLeaves)) out.AddEvent(true, kPreempted, why);
    SetCondition(in, out, kPreempted, true, kJobLeaves, why);
    return true;
  }
  if (!HasReason(in, kJobLeaves) && !HasReason(in, kJobWaits)) return false;
  if (state.outcome.ended() || state.suspended) return false;
  const auto placed = std::count_if(pods.active.begin(), pods.active.end(),
                                    [](const PodFacts* pod) { return pod->scheduled; });
  if (placed < LeastTogether(in)) {
    SetCondition(in, out, kPreempted, true, kJobWaits, in.job.status.Find(kPreempted)->message);
  } else {
    SetCondition(in, out, kPreempted, false, "StartsAgain", "the job has pods to start with again");
  }
  return true;
}

bool IsBeingRebuiltFromLoss(const Snapshot& in) {
  return in.view != nullptr && in.lineage > membership::EpochLineage(in.view->epoch);
}

}  // namespace

bool GivesAll(const Snapshot& in, DecisionDraft& out) {
  if (in.job.Suspended() || IsOutdated(in) || JobHasEnded(in)) return false;
  if (HasReason(in, kJobLeaves) && PodsStillEnd(in, out)) return true;
  return !IsBeingRebuiltFromLoss(in) && !IsAboutToEnd(in) && DemandForAll(in);
}

// Until the pods are seen to leave, the admission counts on them only as long as they are offered.
void OfferAll(const Snapshot& in, DecisionDraft& out) {
  scheduler::Holding holding{.least = LeastTogether(in), .whole = true};
  for (const PodFacts& pod : in.pods) {
    if (pod.scheduled && !pod.ended()) holding.pods.push_back({pod.uid, pod.name, true});
  }
  out.holding = std::move(holding);
}

void YieldToOthers(const Snapshot& in, PodSets& pods, WaitReasons& why, DecisionDraft& out) {
  if (IsBeingRebuiltFromLoss(in)) return;
  const std::vector<const PodFacts*> givable = Givable(in, pods);
  int more_than_least = CountTraining(in, givable) - LeastTogether(in);
  Gifts gifts;
  for (const PodFacts* pod : givable) {
    const auto& demands = in.demands;
    const auto demand = std::find_if(demands.begin(), demands.end(),
                                     [&](const auto& one) { return one.uid == pod->uid; });
    if (demand == demands.end()) continue;
    // The demand may have been decided before a pod was lost.
    if (Trains(in, *pod) && more_than_least-- <= 0) continue;
    Drain(pods, out, pod, kPreempted);
    auto gift = std::find_if(gifts.begin(), gifts.end(),
                             [&](const auto& one) { return one.first->job == demand->job; });
    if (gift == gifts.end()) gift = gifts.insert(gift, {&*demand, {}});
    gift->second.push_back(pod->name);
  }
  if (!gifts.empty()) Explain(in, pods, why, out, gifts);
}

void OfferPods(const Snapshot& in, const PodSets& pods, DecisionDraft& out) {
  if (IsBeingRebuiltFromLoss(in)) return;
  const std::vector<const PodFacts*> givable = Givable(in, pods);
  scheduler::Holding holding{
      .least = LeastTogether(in),
      .whole = !IsAboutToEnd(in),
      .since = api::ParseTime(in.job.status.running_since).value_or(Time::max())};
  if (CountTraining(in, givable) < holding.least) {
    // It trains with pods on nodes that are to go, too, and can do without none of them: so it
    // gives all or nothing.
    const std::vector<const PodFacts*> training = Training(in, pods);
    if (static_cast<int>(training.size()) < holding.least) return;
    holding.least = static_cast<int>(training.size());
    for (const PodFacts* pod : training) holding.pods.push_back({pod->uid, pod->name, true});
    out.holding = std::move(holding);
    return;
  }
  for (const PodFacts* pod : givable) {
    holding.pods.push_back({pod->uid, pod->name, Trains(in, *pod)});
  }
  for (const PodFacts* pod : Given(in, out)) holding.pods.push_back({pod->uid, pod->name, false});
  for (const int size : in.job.spec.elastic_policy.allowed_sizes) {
    if (size >= holding.least) holding.sizes.push_back(size);
  }
  std::sort(holding.sizes.begin(), holding.sizes.end());
  out.holding = std::move(holding);
}

void SetPreempted(const Snapshot& in, const JobState& state, const PodSets& pods,
                  const WaitReasons& why, DecisionDraft& out) {
  if (SetWholePreempted(in, state, pods, out)) return;
  if (!why.preempted.empty()) {
    return SetCondition(in, out, kPreempted, true, "MoreImportantJob", why.preempted);
  }
  if (!in.job.status.Is(kPreempted)) return;
  if (state.outcome.ended() || state.suspended || state.finishing) {
    return SetCondition(in, out, kPreempted, false, "NotRunning", "the job trains no more");
  }
  const auto placed = std::count_if(pods.active.begin(), pods.active.end(),
                                    [](const PodFacts* pod) { return pod->scheduled; });
  if (!in.demands.empty() || placed < state.wanted) return;
  SetCondition(in, out, kPreempted, false, "GrownBack", "the job has as many pods as it asks for");
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
  const std::size_t jobs = by_job.size();
  if (jobs > kMostJobsNamed) {
    std::stable_sort(by_job.begin(), by_job.end(), [](const auto& a, const auto& b) {
      return a.second.size() > b.second.size();
    });
    by_job.resize(kMostJobsNamed);
  }
  std::string text;
  for (const auto& [job, pods] : by_job) {
    text += fmt::format("{}{} of job {}{}", text.empty() ? "" : ", ", Names(pods), job,
                        whole.count(job) != 0 ? " (all that it has)" : "");
  }
  if (jobs > by_job.size()) text += fmt::format(" and of {} more jobs", jobs - by_job.size());
  return fmt::format("{} of less important jobs leave{} for it: {}",
                     Plural(in.gang_fit->leavers.size(), "pod"),
                     in.gang_fit->leavers.size() == 1 ? "s" : "", text);
}

}  // namespace ringmaster::planner
