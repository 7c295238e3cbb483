// Phase 4: which pods there should be.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

// How long a drained pod may take to leave the view before it goes anyway.
std::optional<Time> DrainEnd(const PodFacts& pod) {
  if (!pod.drain_since) return std::nullopt;
  return *pod.drain_since + std::chrono::seconds(pod.grace_seconds);
}

// A pod leaves the view by plan only once somebody is in a view: before that it just goes.
bool HasLeft(const PlanContext& plan, const PodFacts& pod) { return !InView(plan.in, pod.uid); }

// All pods that train are to leave: with the last of them the job's state would be gone.
bool NobodyStays(const PlanContext& plan) {
  if (plan.in.view == nullptr || plan.suspended || plan.finishing) return false;
  const auto& members = plan.in.view->pods;
  return std::none_of(members.begin(), members.end(), [&plan](const membership::Pod& member) {
    const PodFacts* pod = FindPod(plan.in, member.uid);
    return pod != nullptr && !pod->leaving() && !pod->ended();
  });
}

// `held`: pods that were asked to leave and are not told yet.
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
      // Marked by somebody else (ringmaster drain): the time counts from when we saw it.
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

// A pod that waits for a node is kept off those that end; one of them stays after all. Its like is
// made without that.
void FreeKeptOff(PlanContext& plan) {
  for (const PodFacts* pod : std::vector(plan.active)) {
    if (!NodeToReturnTo(plan, *pod).empty()) Drain(plan, pod, "NodeStays");
  }
}

// Pods on nodes that are to go leave when enough others train in their place, so that no pod that
// waits for the node waits for ever and the job never falls below its size for it. On a node that
// ends anyway they don't wait longer than kWarnedGrace.
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
  // Which pods leave first: not in the ring; on a node that ends; with a high index.
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

// Ended pods whose end is in the status (of the API server, not only in ours) make room.
void RemoveEnded(PlanContext& plan) {
  for (const PodFacts& pod : plan.in.pods) {
    if (pod.ended() && !pod.deleting && pod.phase != PodPhase::kSucceeded &&
        IsAccounted(plan.in, pod.uid)) {
      plan.out.deletes.push_back({pod.name, pod.uid, "Replaced"});
    }
  }
}

// All pods that the user asks for are made at once; those that find no room wait for it, gated or
// Pending, while the others train (gang.cc bounds how often a job grows by what appears).
void Grow(PlanContext& plan) {
  // What the flavours of its admission want of new pods is not known.
  if (plan.in.queue && plan.in.queue->changes == nullptr) return;
  std::set<int> taken;
  // A pod that is about to leave, or out of reach, has its successor by then.
  std::size_t have = Staying(plan).size();
  for (const PodFacts& pod : plan.in.pods) {
    taken.insert(pod.index);
    // It may be that the job has finished and we don't know yet: it keeps its place until phase 2
    // has judged.
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
    // Nothing is rebuilt: a pod that isn't in the last view has nothing to do here any more.
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
