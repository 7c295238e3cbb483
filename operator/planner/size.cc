// Phase 4: which pods there should be.
#include <fmt/format.h>

#include <algorithm>
#include <set>

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

void ScaleDown(Work& work) {
  const std::size_t wanted = static_cast<std::size_t>(work.wanted);
  if (work.active.size() <= wanted) return;
  const std::size_t surplus = work.active.size() - wanted;
  work.Say(false, "ScalingDown",
           fmt::format("{} run or are coming, {} wanted: first those that don't train yet leave, "
                       "then the highest indexes",
                       Plural(work.active.size(), "pod"), wanted));
  for (std::size_t i = 0; i < surplus; ++i) {
    const auto leaves = std::max_element(
        work.active.begin(), work.active.end(), [&](const PodFacts* a, const PodFacts* b) {
          const bool a_trains = InView(work.in, a->uid), b_trains = InView(work.in, b->uid);
          return a_trains != b_trains ? a_trains : a->index < b->index;
        });
    const PodFacts* pod = *leaves;
    work.active.erase(leaves);
    work.out.drains.push_back({pod->name, pod->uid, "ScaledDown"});
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
  std::size_t have = work.active.size();
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
    work.out.creates.push_back(
        {index, replacing ? "to bring the job back to its size" : "to start the job"});
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
  RemoveEnded(work);
  Grow(work);
}

}  // namespace ringmaster::planner
