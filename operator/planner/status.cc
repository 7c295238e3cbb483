// Phase 9: what the user sees.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/work.h"

namespace ringmaster::planner {

void SetCondition(Work& work, const std::string& type, bool on, std::string reason,
                  std::string message) {
  auto& conditions = work.out.status.conditions;
  auto at = std::find_if(conditions.begin(), conditions.end(),
                         [&](const api::Condition& c) { return c.type == type; });
  if (at == conditions.end())
    at = conditions.insert(conditions.end(), api::Condition{.type = type});
  if (at->status != on || at->last_transition_time.empty()) {
    at->status = on;
    at->last_transition_time = api::FormatTime(work.in.now);
  }
  at->reason = std::move(reason);
  at->message = std::move(message);
  at->observed_generation = work.in.job.generation;
}

namespace {

using membership::EpochText;

// Members of the newest view that are gone, or that say they are not in it yet. A first view is not
// rebuilt: it is on its way to its members.
std::vector<std::string> NotInRing(const Work& work) {
  std::vector<std::string> names;
  if (work.in.view == nullptr) return names;
  for (const membership::Pod& pod : work.in.view->pods) {
    const SidecarFacts* sidecar = FindSidecar(work.in, pod.uid);
    const bool behind = work.in.view->reason != membership::Reason::kBootstrap &&
                        sidecar != nullptr && sidecar->attending &&
                        sidecar->epoch < work.in.view->epoch;
    if (behind || IsGone(work.in, pod.uid)) names.push_back(pod.name);
  }
  return names;
}

std::string WhySuspended(const Work& work) {
  return work.in.job.spec.run_policy.suspend ? "runPolicy.suspend is true: all pods are removed"
                                             : "runPolicy.suspend is false again; the pods of "
                                               "before are waited for, they still end";
}

void SetRunning(Work& work) {
  const membership::ViewPtr& view = work.in.view;
  if (work.verdict.ended()) {
    return SetCondition(work, "Running", false, "JobEnded", work.verdict.message);
  }
  if (work.suspended) {
    return SetCondition(work, "Running", false, "Suspended", WhySuspended(work));
  }
  if (!work.stall_reason.empty()) {
    return SetCondition(work, "Running", false, work.stall_reason, work.stall_message);
  }
  if (view == nullptr) {
    return SetCondition(work, "Running", false, "WaitingForInit", WaitingForInit(work));
  }
  const std::string size = fmt::format("{} and {} in epoch {}", Plural(view->pods.size(), "pod"),
                                       Plural(view->ranks.size(), "rank"), EpochText(view->epoch));
  if (!view->train) {
    return SetCondition(work, "Running", false, "BelowMinReplicas",
                        fmt::format("{} are held at the step boundary: minReplicas is {}", size,
                                    work.in.job.spec.elastic_policy.min_replicas));
  }
  SetCondition(work, "Running", true, "Training", size);
}

// What a recovery from quorum loss waits for is said once, as an event too.
bool SetStalled(Work& work) {
  if (work.stall_reason.empty()) return false;
  const api::Condition* before = work.in.job.status.Find("Rebuilding");
  const bool news = before == nullptr || !before->status || before->message != work.stall_message;
  if (news && work.stall_reason != kQuorumLost && work.stall_reason != kStalled) {
    work.Say(true, work.stall_reason, work.stall_message);
  }
  SetCondition(work, "Rebuilding", true, work.stall_reason, work.stall_message);
  return true;
}

void SetRebuilding(Work& work) {
  if (SetStalled(work)) return;
  std::vector<std::string> names;
  if (!work.verdict.ended() && !work.suspended && !work.finishing) names = NotInRing(work);
  const api::Condition* before = work.out.status.Find("Rebuilding");
  if (names.empty() && before == nullptr) return;
  if (names.empty()) {
    return SetCondition(work, "Rebuilding", false, "AllIn", "every member is in the newest view");
  }
  SetCondition(work, "Rebuilding", true, std::string(ReasonText(work.in.view->reason)),
               fmt::format("epoch {} is not in use yet by {}", EpochText(work.in.view->epoch),
                           fmt::join(names, ", ")));
}

void SetSuspended(Work& work) {
  const bool before = work.out.status.Is("Suspended");
  if (!work.suspended && !before) return;
  const std::string reason = work.suspended ? "Suspended" : "Resumed";
  const std::string message =
      work.suspended ? WhySuspended(work) : "runPolicy.suspend is false again";
  SetCondition(work, "Suspended", work.suspended, reason, message);
  if (work.suspended != before) work.Say(false, reason, message);
}

void SetEnd(Work& work) {
  if (!work.verdict.ended()) return;
  api::Status& status = work.out.status;
  const std::string type = work.verdict.succeeded ? "Succeeded" : "Failed";
  if (status.Is(type)) return;
  SetCondition(work, type, true, work.verdict.reason, work.verdict.message);
  status.completion_time = api::FormatTime(work.in.now);
  work.Say(work.verdict.failed, work.verdict.succeeded ? "Succeeded" : work.verdict.reason,
           work.verdict.message);
  // The job's time to live begins now.
  if (work.in.job.spec.run_policy.ttl_seconds_after_finished) work.LookAgainAt(work.in.now);
}

void SetRing(Work& work) {
  api::Status& status = work.out.status;
  const membership::ViewPtr& view = work.in.view;
  if (work.suspended) {
    status.world_size = 0;
    status.ring.clear();
    return;
  }
  if (view == nullptr || work.verdict.ended()) return;
  if (view->epoch > status.epoch) {
    const bool loss = !view->planned && (view->reason == membership::Reason::kWorkerLost ||
                                         view->reason == membership::Reason::kPodLost ||
                                         view->reason == membership::Reason::kQuorumRecovered);
    work.Say(loss, std::string(ReasonText(view->reason)),
             fmt::format("epoch {}: world size {}, before {}", EpochText(view->epoch),
                         view->ranks.size(), status.world_size));
  }
  status.epoch = view->epoch;
  status.world_size = static_cast<int>(view->ranks.size());
  status.ring.clear();
  for (std::size_t rank = 0; rank < view->ranks.size(); ++rank) {
    const membership::RankEntry& entry = view->ranks[rank];
    const membership::Pod& pod = view->pods[entry.pod];
    status.ring.push_back(
        {static_cast<int>(rank), pod.name, static_cast<int>(entry.slot), pod.node});
  }
}

void SetRebuilds(Work& work) {
  api::Status& status = work.out.status;
  for (const job::Rebuild& rebuild : work.in.rebuilds) {
    const std::uint64_t last = status.last_rebuild ? status.last_rebuild->epoch : 0;
    if (rebuild.epoch < last) continue;
    const std::int64_t counted = rebuild.epoch == last ? status.last_rebuild->steps_lost : 0;
    status.steps_lost += rebuild.steps_lost - counted;
    if (rebuild.steps_lost > counted) {
      work.Say(true, "StepsLost",
               fmt::format("epoch {} ({}) goes on {} before the newest that a lost worker is known "
                           "to have completed",
                           EpochText(rebuild.epoch), rebuild.reason,
                           Plural(static_cast<std::size_t>(rebuild.steps_lost), "step")));
    }
    status.last_rebuild = api::LastRebuild{rebuild.epoch, rebuild.reason,
                                           job::TotalSeconds(rebuild.seconds), rebuild.steps_lost};
  }
}

void CountPods(Work& work) {
  api::Status& status = work.out.status;
  int running = 0, succeeded = 0;
  for (const PodFacts& pod : work.in.pods) {
    running += !pod.ended() && pod.phase == PodPhase::kRunning ? 1 : 0;
    succeeded += pod.phase == PodPhase::kSucceeded && (work.finishing || !pod.leaving()) ? 1 : 0;
  }
  status.worker.active = running;
  // Cleaning up takes nothing away from what was achieved.
  status.worker.succeeded =
      work.verdict.ended() ? std::max(status.worker.succeeded, succeeded) : succeeded;
  status.replicas = static_cast<int>(work.active.size());
  status.selector = fmt::format("{}={},{}=worker", kJobNameLabel, work.in.job.name, kJobRoleLabel);
}

std::string StateWord(const Work& work) {
  if (work.verdict.ended()) return work.verdict.succeeded ? "Succeeded" : "Failed";
  if (work.suspended) return "Suspended";
  if (work.finishing) return "Finishing";
  if (work.in.view == nullptr) return work.out.status.Is("Scheduled") ? "Starting" : "Pending";
  if (work.out.status.Is("Rebuilding")) return "Rebuilding";
  return work.in.view->train ? "Running" : "Held";
}

}  // namespace

void WriteStatus(Work& work) {
  api::Status& status = work.out.status;
  status.observed_generation = work.in.job.generation;
  if (status.Find("Created") == nullptr) {
    SetCondition(work, "Created", true, "Accepted", "the operator has taken up the job");
  }
  if (work.suspended) {
    status.start_time.clear();
  } else if (status.start_time.empty()) {
    status.start_time = api::FormatTime(work.in.now);
    const auto& deadline = work.in.job.spec.run_policy.active_deadline_seconds;
    if (deadline) work.LookAgainAt(work.in.now + std::chrono::seconds(*deadline));
  }
  // How many pods have a node says nothing once they end.
  if (!work.verdict.ended() && !work.suspended && !work.finishing) SetStarting(work);
  if (work.suspended) {  // what its pods have or lack, they go
    std::erase_if(status.conditions,
                  [](const auto& c) { return c.type == "Scheduled" || c.type == "Started"; });
  }
  SetRebuilding(work);
  SetRunning(work);
  SetSuspended(work);
  SetEnd(work);
  SetRing(work);
  SetRebuilds(work);
  CountPods(work);
  status.state = StateWord(work);
}

}  // namespace ringmaster::planner
