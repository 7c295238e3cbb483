// Phase 4: which pods should exist.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

constexpr std::chrono::seconds kRejectedPause{10};
constexpr std::chrono::seconds kIgnoredPause{30};

// How long a drained pod may take to leave the view before it is deleted anyway.
std::optional<Time> DrainEnd(const PodFacts& pod) {
  if (!pod.drain_since) return std::nullopt;
  return *pod.drain_since + std::chrono::seconds(pod.grace_seconds);
}

// A pod leaves a view by plan. Without a view it is deleted at once.
bool HasLeft(const Snapshot& in, const PodFacts& pod) { return !InView(in, pod.uid); }

// All training pods are about to leave: the job's state would be lost with the last of them.
bool NobodyStays(const Snapshot& in, const JobState& state) {
  if (in.view == nullptr || state.suspended || state.finishing) return false;
  const auto& members = in.view->pods;
  return std::none_of(members.begin(), members.end(), [&](const membership::Pod& member) {
    const PodFacts* pod = FindPod(in, member.uid);
    return pod != nullptr && !pod->leaving() && !pod->ended();
  });
}

// `held`: pods that should leave but are not told so yet.
void ReportHeld(const Snapshot& in, DecisionDraft& out, const std::vector<std::string>& held) {
  const bool said = in.job.status.Is(kDrainHeld);
  if (held.empty()) {
    if (said) SetCondition(in, out, kDrainHeld, false, "SuccessorTrains", "");
    return;
  }
  const std::string message = fmt::format(
      "nobody would be left that has the job's state: {} leave{} when a pod that stays has joined "
      "the ring",
      Names(held), held.size() == 1 ? "s" : "");
  SetCondition(in, out, kDrainHeld, true, "LastWithState", message);
  if (!said) out.AddEvent(true, kDrainHeld, message, held.front());
}

void FinishDrains(const Snapshot& in, const JobState& state, const PodSets& pods,
                  DecisionDraft& out) {
  const bool nobody_stays = NobodyStays(in, state);
  std::vector<std::string> held;
  for (const PodFacts* pod : pods.leaving) {
    if (pod->deleting) continue;
    if (!pod->drain_since) {
      if (nobody_stays && InView(in, pod->uid)) {
        held.push_back(pod->name);
        continue;
      }
      // Another client set the mark (ringmaster drain): the time counts from when we saw it.
      out.drains.push_back({pod->name, pod->uid, pod->drain_reason});
    }
    if (HasLeft(in, *pod)) {
      out.deletes.push_back({pod->name, pod->uid, "Drained"});
    } else if (const auto end = DrainEnd(*pod)) {
      if (in.now >= *end) {
        out.deletes.push_back({pod->name, pod->uid, "DrainGraceOver"});
        out.AddEvent(true, "DrainGraceOver",
                     fmt::format("pod {} did not leave the ring within {} s and is deleted: {}",
                                 pod->name, pod->grace_seconds, WhyNotLeft(in, *pod)),
                     pod->name);
      } else {
        out.LookAgainAt(*end);
      }
    }
  }
  ReportHeld(in, out, held);
}

std::vector<const PodFacts*> Staying(const PodSets& pods) {
  std::vector<const PodFacts*> staying;
  for (const PodFacts* pod : pods.active) {
    if (pods.Stays(*pod)) staying.push_back(pod);
  }
  return staying;
}

void ScaleDown(const Snapshot& in, const JobState& state, PodSets& pods, DecisionDraft& out) {
  const std::size_t wanted = static_cast<std::size_t>(state.wanted);
  std::vector<const PodFacts*> staying = Staying(pods);
  if (staying.size() <= wanted) return;
  out.AddEvent(
      false, "ScalingDown",
      fmt::format("{} run or are coming, {} wanted: first those that don't train yet leave, "
                  "then the highest indexes",
                  Plural(staying.size(), "pod"), wanted));
  std::sort(staying.begin(), staying.end(), [&](const PodFacts* a, const PodFacts* b) {
    const bool a_trains = InView(in, a->uid), b_trains = InView(in, b->uid);
    return a_trains != b_trains ? b_trains : a->index > b->index;
  });
  staying.resize(staying.size() - wanted);
  for (const PodFacts* pod : staying) Drain(pods, out, pod, "ScaledDown");
}

// A waiting pod is kept off nodes that are about to go. If one of these nodes stays after all, the
// pod is replaced by one without that rule.
void FreeKeptOff(const Snapshot& in, PodSets& pods, DecisionDraft& out) {
  for (const PodFacts* pod : std::vector(pods.active)) {
    if (!NodeToReturnTo(in, *pod).empty()) Drain(pods, out, pod, "NodeStays");
  }
}

// Pods on nodes that are about to go, and pods with a GPU that fails, leave once enough others
// train in their place, so that the job never falls below its size. If the node is certain to end,
// they wait at most kWarnedGrace, so that a cluster that waits for the node is not delayed for
// ever. The last one that has the job's state waits for longer: most nodes live that long.
void DrainWarned(const Snapshot& in, const JobState& state, PodSets& pods, DecisionDraft& out) {
  std::vector<const PodFacts*> warned;
  int others = 0;
  for (const PodFacts* pod : pods.active) {
    if (pods.warned.count(pod->uid) != 0) {
      warned.push_back(pod);
    } else if (InView(in, pod->uid)) {
      ++others;
    }
  }
  // Order of leaving: pods outside the ring, then those on a node that is certain to end, then
  // those with a high index.
  std::sort(warned.begin(), warned.end(), [&](const PodFacts* a, const PodFacts* b) {
    const auto rank = [&](const PodFacts* pod) {
      return std::tuple(!InView(in, pod->uid), pods.warned.at(pod->uid).ends, pod->index);
    };
    return rank(a) > rank(b);
  });
  const auto needed = static_cast<std::size_t>(std::max(0, state.wanted - others));
  std::size_t may_leave = warned.size() - std::min(warned.size(), needed);
  for (const PodFacts* pod : warned) {
    const Warning& warning = pods.warned.at(pod->uid);
    const bool is_last = others == 0 && pod == warned.back() && InView(in, pod->uid);
    const Time end =
        pod->warned_since.value_or(in.now) + (is_last ? kLastWarnedGrace : kWarnedGrace);
    if (may_leave > 0) {
      --may_leave;
      Drain(pods, out, pod, warning.reason);
    } else if (warning.of_pod && others >= LeastTogether(in)) {
      Drain(pods, out, pod, warning.reason);
    } else if (warning.of_pod && others == 0) {
      continue;  // nobody would be left that has the job's state
    } else if (warning.ends && in.now >= end) {
      Drain(pods, out, pod, warning.reason);
    } else if (warning.ends) {
      out.LookAgainAt(end);
    }
  }
}

// Until when an ended pod keeps its place, because its successor may well end as fast and in the
// same way, and no limit counts such ends: a kubelet that rejects a pod does so at once, and where
// the scheduler sees room on its node it rejects the next one, too; an exit code that a rule
// ignores may come at each start.
std::optional<Time> SuccessorWaitsUntil(const Snapshot& in, const PodFacts& pod) {
  std::optional<Time> until;
  if (pod.leaving()) return until;
  if (pod.rejected) until = pod.accepted_at.value_or(pod.created) + kRejectedPause;
  if (IsIgnored(in, pod)) until = std::max(until.value_or(Time()), pod.created + kIgnoredPause);
  return until && in.now < *until ? until : std::nullopt;
}

// Deletes ended pods whose end is in the API server's status, and not only in ours. One that ended
// with 0 may be the first of all to end, unless it was told to leave.
void RemoveEnded(const Snapshot& in, DecisionDraft& out) {
  for (const PodFacts& pod : in.pods) {
    const bool may_stay =
        (pod.phase == PodPhase::kSucceeded && !pod.leaving()) || SuccessorWaitsUntil(in, pod);
    if (pod.ended() && !pod.deleting && !may_stay && IsAccounted(in, pod.uid)) {
      out.deletes.push_back({pod.name, pod.uid, "Replaced"});
    }
  }
}

// Wants all missing pods at once. gang.cc keeps back those that find no room.
void Grow(const Snapshot& in, const JobState& state, const PodSets& pods, DecisionDraft& out) {
  // The changes that the queue's flavours require for new pods are unknown.
  if (in.queue && in.queue->changes == nullptr) return;
  std::set<int> taken;
  // The successor of a leaving or unreachable pod is counted instead of it.
  std::size_t have = Staying(pods).size();
  for (const PodFacts& pod : in.pods) {
    taken.insert(pod.index);
    // The job may have finished without our knowing it yet: the pod keeps its place until phase 2
    // has evaluated it.
    if (pod.phase == PodPhase::kSucceeded && !pod.leaving()) ++have;
    const auto until = SuccessorWaitsUntil(in, pod);
    if (!until) continue;
    ++have;
    out.LookAgainAt(*until);
  }
  const bool replacing =
      !in.job.status.start_time.empty() && (in.view != nullptr || in.pods.size() > have);
  for (int index = 0; have < static_cast<std::size_t>(state.wanted); ++index) {
    if (taken.count(index) != 0) continue;
    PodCreate create{index, replacing ? "to bring the job back to its size" : "to start the job",
                     NodesToAvoid(in, out)};
    RecordAnnouncedEnds(in, create);
    if (in.queue) create.of_queue = in.queue->changes;
    out.creates.push_back(std::move(create));
    ++have;
  }
}

}  // namespace

void Drain(PodSets& pods, DecisionDraft& out, const PodFacts* pod, const std::string& reason) {
  std::erase(pods.active, pod);
  const auto warned = pods.warned.find(pod->uid);
  const bool explained = warned != pods.warned.end() && warned->second.reason == reason;
  out.drains.push_back(
      {pod->name, pod->uid, reason, explained ? warned->second.message : std::string()});
}

void Size(const Snapshot& in, const JobState& state, PodSets& pods, WaitReasons& why,
          DecisionDraft& out) {
  if (state.finishing) {
    // Nothing is rebuilt any more: a pod outside the last view is not needed.
    for (const PodFacts& pod : in.pods) {
      // A pod may be in a newer view than the one that is known here.
      const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
      const bool outside = in.view != nullptr && !InView(in, pod.uid) &&
                           (sidecar == nullptr || sidecar->epoch <= in.view->epoch);
      if (outside && !pod.deleting && !pod.ended() && !IsAboutToFail(in, out, pod)) {
        out.deletes.push_back({pod.name, pod.uid, "JobFinishes"});
      }
    }
    return;
  }
  FinishDrains(in, state, pods, out);
  ScaleDown(in, state, pods, out);
  YieldToOthers(in, pods, why, out);
  FreeKeptOff(in, pods, out);
  DrainWarned(in, state, pods, out);
  OfferPods(in, pods, out);
  for (const PodFacts* pod : pods.gated) out.deletes.push_back({pod->name, pod->uid, "Gated"});
  RemoveEnded(in, out);
  Grow(in, state, pods, out);
}

}  // namespace ringmaster::planner
