// Reports pods that should leave or join but wait for the end of a step that does not come.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// A step may last this long before anything is reported.
constexpr std::chrono::seconds kLongStep{10};

// Since when a planned change has waited for workers of the view, according to its sidecars.
std::optional<Time> AwaitedSince(const Snapshot& in) {
  std::optional<Time> since;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!sidecar.connected || !sidecar.step_awaited_since) continue;
    if (sidecar.epoch != membership::EpochOf(in.view)) continue;  // it belongs to another view
    since = std::min(since.value_or(*sidecar.step_awaited_since), *sidecar.step_awaited_since);
  }
  return since;
}

std::string NoStepSince(Time since) { return "no step has ended since " + api::FormatTime(since); }

std::vector<std::string> Leavers(const Snapshot& in, const PodSets& pods) {
  std::vector<std::string> names;
  for (const PodFacts* pod : pods.leaving) {
    const bool told = pod->drain_since || pod->deleting;
    if (told && InView(in, pod->uid)) names.push_back(pod->name);
  }
  return names;
}

// Pods outside the view that are ready to join it, and members with a worker that is.
std::vector<std::string> Joiners(const Snapshot& in) {
  std::vector<std::string> names;
  for (const SidecarFacts& sidecar : in.sidecars) {
    const PodFacts* pod = FindPod(in, sidecar.pod_uid);
    if (!sidecar.connected || !sidecar.ready || LacksState(in, sidecar)) continue;
    if (pod == nullptr || pod->leaving() || pod->ended()) continue;
    const auto& workers = sidecar.candidate.workers;
    const bool waits = std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
      return worker.ready && in.view->FindRank(pod->uid, worker.slot, worker.incarnation) < 0;
    });
    if (waits) names.push_back(sidecar.pod_name);
  }
  std::sort(names.begin(), names.end(), membership::NaturalLess);
  return names;
}

// "the drain of a and the join of b wait"; empty if no known pod waits.
std::string WhoWaits(const Snapshot& in, const PodSets& pods) {
  const auto leavers = Leavers(in, pods), joiners = Joiners(in);
  std::string text;
  if (!leavers.empty()) text += "the drain of " + Names(leavers);
  if (!leavers.empty() && !joiners.empty()) text += " and ";
  if (!joiners.empty()) text += "the join of " + Names(joiners);
  if (text.empty()) return "";
  return text + (leavers.empty() || joiners.empty() ? " waits" : " wait");
}

// Empty if nothing waits, or not for long.
std::string Describe(const Snapshot& in, const JobState& state, const PodSets& pods,
                     DecisionDraft& out) {
  const bool trains = in.view != nullptr && in.view->train && !state.outcome.ended() &&
                      !state.suspended && !state.finishing;
  const std::optional<Time> since = trains ? AwaitedSince(in) : std::nullopt;
  const std::string who = since ? WhoWaits(in, pods) : "";
  if (who.empty()) return "";
  if (in.now < *since + kLongStep) {
    out.LookAgainAt(*since + kLongStep);
    return "";
  }
  return fmt::format("{}: {} for the next state.commit() or optimizer.step()", NoStepSince(*since),
                     who);
}

}  // namespace

void SetNoStepEnds(const Snapshot& in, const JobState& state, const PodSets& pods,
                   DecisionDraft& out) {
  const std::string message = Describe(in, state, pods, out);
  const bool before = out.status.Is(kNoStepEnds);
  if (message.empty()) {
    if (before) {
      SetCondition(in, out, kNoStepEnds, false, "NothingWaits", "nothing waits for a step's end");
    }
    return;
  }
  SetCondition(in, out, kNoStepEnds, true, kNoStepEnds, message);
  if (!before) out.AddEvent(true, kNoStepEnds, message);
}

std::string WhyNotLeft(const Snapshot& in, const PodFacts& pod) {
  std::vector<std::string> causes = DescribeStalls(in);
  if (const auto since = AwaitedSince(in)) causes.insert(causes.begin(), NoStepSince(*since));
  if (!causes.empty()) return fmt::format("{}", fmt::join(causes, "; "));
  const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
  return sidecar != nullptr && sidecar->connected
             ? "its sidecar has not said why (does it stand still?)"
             : "its sidecar has no connection to the operator";
}

}  // namespace ringmaster::planner
