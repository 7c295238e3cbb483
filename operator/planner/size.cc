// Phase 4: which pods there should be.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "operator/planner/work.h"

namespace ringmaster::planner {
namespace {

// How long a drained pod may take to leave the view before it goes anyway.
std::optional<Time> DrainEnd(const PodFacts& pod) {
  if (!pod.drain_since) return std::nullopt;
  return *pod.drain_since + std::chrono::seconds(pod.grace_seconds);
}

// A pod leaves the view by plan only once somebody is in a view: before that it just goes.
bool HasLeft(const Work& work, const PodFacts& pod) { return !InView(work.in, pod.uid); }

void FinishDrains(Work& work) {
  for (const PodFacts* pod : work.leaving) {
    if (pod->deleting) continue;
    if (!pod->drain_since) {
      // Marked by somebody else (ringmaster drain): the time counts from when we saw it.
      work.out.drains.push_back({pod->name, pod->uid, pod->drain_reason});
    }
    if (HasLeft(work, *pod)) {
      work.out.deletes.push_back({pod->name, pod->uid, "Drained"});
    } else if (const auto end = DrainEnd(*pod)) {
      if (work.in.now >= *end) {
        work.out.deletes.push_back({pod->name, pod->uid, "DrainGraceOver"});
        work.Say(true, "DrainGraceOver",
                 fmt::format("pod {} did not leave the ring within {} s and is deleted", pod->name,
                             pod->grace_seconds),
                 pod->name);
      } else {
        work.LookAgainAt(*end);
      }
    }
  }
}

void Drain(Work& work, const PodFacts* pod, const std::string& reason) {
  std::erase(work.active, pod);
  work.out.drains.push_back({pod->name, pod->uid, reason});
}

std::vector<const PodFacts*> Staying(const Work& work) {
  std::vector<const PodFacts*> staying;
  for (const PodFacts* pod : work.active) {
    if (work.Stays(*pod)) staying.push_back(pod);
  }
  return staying;
}

void ScaleDown(Work& work) {
  const std::size_t wanted = static_cast<std::size_t>(work.wanted);
  std::vector<const PodFacts*> staying = Staying(work);
  if (staying.size() <= wanted) return;
  work.Say(false, "ScalingDown",
           fmt::format("{} run or are coming, {} wanted: first those that don't train yet leave, "
                       "then the highest indexes",
                       Plural(staying.size(), "pod"), wanted));
  std::sort(staying.begin(), staying.end(), [&](const PodFacts* a, const PodFacts* b) {
    const bool a_trains = InView(work.in, a->uid), b_trains = InView(work.in, b->uid);
    return a_trains != b_trains ? b_trains : a->index > b->index;
  });
  staying.resize(staying.size() - wanted);
  for (const PodFacts* pod : staying) Drain(work, pod, "ScaledDown");
}

// A pod that waits for a node is kept off those that end; one of them stays after all. Its like is
// made without that.
void FreeKeptOff(Work& work) {
  for (const PodFacts* pod : std::vector(work.active)) {
    if (!NodeToReturnTo(work, *pod).empty()) Drain(work, pod, "NodeStays");
  }
}

// Pods on nodes that are to go leave when enough others train in their place, so that nobody who
// waits for the node waits for ever and the job never falls below its size for it. On a node that
// ends anyway they don't wait longer than kWarnedGrace.
void DrainWarned(Work& work) {
  std::vector<const PodFacts*> warned;
  int others = 0;
  for (const PodFacts* pod : work.active) {
    if (work.warned.count(pod->uid) != 0) {
      warned.push_back(pod);
    } else if (InView(work.in, pod->uid)) {
      ++others;
    }
  }
  // Who may leave first: not in the ring; on a node that ends; with a high index.
  std::sort(warned.begin(), warned.end(), [&](const PodFacts* a, const PodFacts* b) {
    const auto rank = [&](const PodFacts* pod) {
      return std::tuple(!InView(work.in, pod->uid), work.warned.at(pod->uid).ends, pod->index);
    };
    return rank(a) > rank(b);
  });
  const auto needed = static_cast<std::size_t>(std::max(0, work.wanted - others));
  std::size_t may_leave = warned.size() - std::min(warned.size(), needed);
  for (const PodFacts* pod : warned) {
    const Warning& warning = work.warned.at(pod->uid);
    const Time end = pod->warned_since.value_or(work.in.now) + kWarnedGrace;
    if (may_leave > 0) {
      --may_leave;
      Drain(work, pod, warning.reason);
    } else if (warning.ends && work.in.now >= end) {
      Drain(work, pod, warning.reason);
    } else if (warning.ends) {
      work.LookAgainAt(end);
    }
  }
}

// Ended pods whose end is in the status (of the API server, not only in ours) make room.
void RemoveEnded(Work& work) {
  for (const PodFacts& pod : work.in.pods) {
    if (pod.ended() && !pod.deleting && pod.phase != PodPhase::kSucceeded &&
        IsAccounted(work.in, pod.uid)) {
      work.out.deletes.push_back({pod.name, pod.uid, "Replaced"});
    }
  }
}

// All pods that the user asks for are made at once; those that find no room wait for it, gated or
// Pending, while the others train (gang.cc bounds how often a job grows by what appears).
void Grow(Work& work) {
  std::set<int> taken;
  // Who is about to leave, or out of reach, has its successor by then.
  std::size_t have = Staying(work).size();
  for (const PodFacts& pod : work.in.pods) {
    taken.insert(pod.index);
    // It may be that the job has finished and we don't know yet: it keeps its place until phase 2
    // has judged.
    if (pod.phase == PodPhase::kSucceeded && !pod.leaving()) ++have;
  }
  const bool replacing = !work.in.job.status.start_time.empty() &&
                         (work.in.view != nullptr || work.in.pods.size() > have);
  for (int index = 0; have < static_cast<std::size_t>(work.wanted); ++index) {
    if (taken.count(index) != 0) continue;
    PodCreate create{index, replacing ? "to bring the job back to its size" : "to start the job",
                     NodesToAvoid(work)};
    TellOfEnds(work, create);
    work.out.creates.push_back(std::move(create));
    ++have;
  }
}

}  // namespace

void Size(Work& work) {
  if (work.finishing) {
    // Nothing is rebuilt: who isn't in the last view has nothing to do here any more.
    for (const PodFacts& pod : work.in.pods) {
      if (work.in.view != nullptr && !InView(work.in, pod.uid) && !pod.deleting && !pod.ended()) {
        work.out.deletes.push_back({pod.name, pod.uid, "JobFinishes"});
      }
    }
    return;
  }
  FinishDrains(work);
  ScaleDown(work);
  FreeKeptOff(work);
  DrainWarned(work);
  RemoveEnded(work);
  Grow(work);
}

}  // namespace ringmaster::planner
