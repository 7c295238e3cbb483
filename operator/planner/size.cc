// Phase 4: which pods should exist.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

// How long a drained pod may take to leave the view before it is deleted anyway.
std::optional<Time> DrainEnd(const PodFacts& pod) {
  if (!pod.drain_since) return std::nullopt;
  return *pod.drain_since + std::chrono::seconds(pod.grace_seconds);
}

// A pod leaves a view by plan. Without a view it is deleted at once.
bool HasLeft(const PlanContext& plan, const PodFacts& pod) { return !InView(plan.in, pod.uid); }

// All training pods are about to leave: the job's state would be lost with the last of them.
bool NobodyStays(const PlanContext& plan) {
  if (plan.in.view == nullptr || plan.suspended || plan.finishing) return false;
  const auto& members = plan.in.view->pods;
  return std::none_of(members.begin(), members.end(), [&plan](const membership::Pod& member) {
    const PodFacts* pod = FindPod(plan.in, member.uid);
    return pod != nullptr && !pod->leaving() && !pod->ended();
  });
}

// `held`: pods that should leave but are not told so yet.
void ReportHeld(PlanContext& plan, const std::vector<std::string>& held) {
  const bool said = plan.in.job.status.Is(kDrainHeld);
  if (held.empty()) {
    if (said) SetCondition(plan, kDrainHeld, false, "SuccessorTrains", "");
    return;
  }
  const std::string message = fmt::format(
      "nobody would be left that has the job's state: {} leave{} when a pod that stays has joined "
      "the ring",
      Names(held), held.size() == 1 ? "s" : "");
  SetCondition(plan, kDrainHeld, true, "LastWithState", message);
  if (!said) plan.AddEvent(true, kDrainHeld, message, held.front());
}

void FinishDrains(PlanContext& plan) {
  const bool nobody_stays = NobodyStays(plan);
  std::vector<std::string> held;
  for (const PodFacts* pod : plan.leaving) {
    if (pod->deleting) continue;
    if (!pod->drain_since) {
      if (nobody_stays && InView(plan.in, pod->uid)) {
        held.push_back(pod->name);
        continue;
      }
      // Another client set the mark (ringmaster drain): the time counts from when we saw it.
      plan.out.drains.push_back({pod->name, pod->uid, pod->drain_reason});
    }
    if (HasLeft(plan, *pod)) {
      plan.out.deletes.push_back({pod->name, pod->uid, "Drained"});
    } else if (const auto end = DrainEnd(*pod)) {
      if (plan.in.now >= *end) {
        plan.out.deletes.push_back({pod->name, pod->uid, "DrainGraceOver"});
        plan.AddEvent(true, "DrainGraceOver",
                      fmt::format("pod {} did not leave the ring within {} s and is deleted: {}",
                                  pod->name, pod->grace_seconds, WhyNotLeft(plan, *pod)),
                      pod->name);
      } else {
        plan.LookAgainAt(*end);
      }
    }
  }
  ReportHeld(plan, held);
}

std::vector<const PodFacts*> Staying(const PlanContext& plan) {
  std::vector<const PodFacts*> staying;
  for (const PodFacts* pod : plan.active) {
    if (plan.Stays(*pod)) staying.push_back(pod);
  }
  return staying;
}

void ScaleDown(PlanContext& plan) {
  const std::size_t wanted = static_cast<std::size_t>(plan.wanted);
  std::vector<const PodFacts*> staying = Staying(plan);
  if (staying.size() <= wanted) return;
  plan.AddEvent(
      false, "ScalingDown",
      fmt::format("{} run or are coming, {} wanted: first those that don't train yet leave, "
                  "then the highest indexes",
                  Plural(staying.size(), "pod"), wanted));
  std::sort(staying.begin(), staying.end(), [&](const PodFacts* a, const PodFacts* b) {
    const bool a_trains = InView(plan.in, a->uid), b_trains = InView(plan.in, b->uid);
    return a_trains != b_trains ? b_trains : a->index > b->index;
  });
  staying.resize(staying.size() - wanted);
  for (const PodFacts* pod : staying) Drain(plan, pod, "ScaledDown");
}

// A waiting pod is kept off nodes that are about to go. If one of these nodes stays after all, the
// pod is replaced by one without that rule.
void FreeKeptOff(PlanContext& plan) {
  for (const PodFacts* pod : std::vector(plan.active)) {
    if (!NodeToReturnTo(plan, *pod).empty()) Drain(plan, pod, "NodeStays");
  }
}

// Pods on nodes that are about to go leave once enough others train in their place, so that the job
// never falls below its size. If the node is certain to end, they wait at most kWarnedGrace, so
// that a cluster that waits for the node is not delayed for ever.
void DrainWarned(PlanContext& plan) {
  std::vector<const PodFacts*> warned;
  int others = 0;
  for (const PodFacts* pod : plan.active) {
    if (plan.warned.count(pod->uid) != 0) {
      warned.push_back(pod);
    } else if (InView(plan.in, pod->uid)) {
      ++others;
    }
  }
  // Order of leaving: pods outside the ring, then those on a node that is certain to end, then
  // those with a high index.
  std::sort(warned.begin(), warned.end(), [&](const PodFacts* a, const PodFacts* b) {
    const auto rank = [&](const PodFacts* pod) {
      return std::tuple(!InView(plan.in, pod->uid), plan.warned.at(pod->uid).ends, pod->index);
    };
    return rank(a) > rank(b);
  });
  const auto needed = static_cast<std::size_t>(std::max(0, plan.wanted - others));
  std::size_t may_leave = warned.size() - std::min(warned.size(), needed);
  for (const PodFacts* pod : warned) {
    const Warning& warning = plan.warned.at(pod->uid);
    const Time end = pod->warned_since.value_or(plan.in.now) + kWarnedGrace;
    if (may_leave > 0) {
      --may_leave;
      Drain(plan, pod, warning.reason);
    } else if (warning.ends && plan.in.now >= end) {
      Drain(plan, pod, warning.reason);
    } else if (warning.ends) {
      plan.LookAgainAt(end);
    }
  }
}

// Deletes ended pods whose end is in the API server's status, and not only in ours.
void RemoveEnded(PlanContext& plan) {
  for (const PodFacts& pod : plan.in.pods) {
    if (pod.ended() && !pod.deleting && pod.phase != PodPhase::kSucceeded &&
        IsAccounted(plan.in, pod.uid)) {
      plan.out.deletes.push_back({pod.name, pod.uid, "Replaced"});
    }
  }
}

// Creates all missing pods at once. Those that find no room wait for it, gated or Pending, while
// the others train (gang.cc bounds how often a job grows because capacity appeared).
void Grow(PlanContext& plan) {
  // The changes that the queue's flavours require for new pods are unknown.
  if (plan.in.queue && plan.in.queue->changes == nullptr) return;
  std::set<int> taken;
  // The successor of a leaving or unreachable pod is counted instead of it.
  std::size_t have = Staying(plan).size();
  for (const PodFacts& pod : plan.in.pods) {
    taken.insert(pod.index);
    // The job may have finished without our knowing it yet: the pod keeps its place until phase 2
    // has evaluated it.
    if (pod.phase == PodPhase::kSucceeded && !pod.leaving()) ++have;
  }
  const bool replacing = !plan.in.job.status.start_time.empty() &&
                         (plan.in.view != nullptr || plan.in.pods.size() > have);
  for (int index = 0; have < static_cast<std::size_t>(plan.wanted); ++index) {
    if (taken.count(index) != 0) continue;
    PodCreate create{index, replacing ? "to bring the job back to its size" : "to start the job",
                     NodesToAvoid(plan)};
    RecordAnnouncedEnds(plan, create);
    if (plan.in.queue) create.of_queue = plan.in.queue->changes;
    plan.out.creates.push_back(std::move(create));
    ++have;
  }
}

}  // namespace

void Drain(PlanContext& plan, const PodFacts* pod, const std::string& reason) {
  std::erase(plan.active, pod);
  plan.out.drains.push_back({pod->name, pod->uid, reason});
}

void Size(PlanContext& plan) {
  if (plan.finishing) {
    // Nothing is rebuilt any more: a pod outside the last view is not needed.
    for (const PodFacts& pod : plan.in.pods) {
      const bool outside = plan.in.view != nullptr && !InView(plan.in, pod.uid);
      if (outside && !pod.deleting && !pod.ended() && !IsAboutToFail(plan, pod)) {
        plan.out.deletes.push_back({pod.name, pod.uid, "JobFinishes"});
      }
    }
    return;
  }
  FinishDrains(plan);
  ScaleDown(plan);
  YieldToOthers(plan);
  FreeKeptOff(plan);
  DrainWarned(plan);
  OfferPods(plan);
  RemoveEnded(plan);
  Grow(plan);
}

}  // namespace ringmaster::planner
