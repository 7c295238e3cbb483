// Phase 9: what the user sees.
#include <fmt/format.h>

#include <algorithm>

#include "operator/api/labels.h"
#include "operator/planner/plan_context.h"

namespace ringmaster::planner {

void SetCondition(PlanContext& plan, const std::string& type, bool on, std::string reason,
                  std::string message) {
  auto& conditions = plan.out.status.conditions;
  auto at = std::find_if(conditions.begin(), conditions.end(),
                         [&](const api::Condition& c) { return c.type == type; });
  if (at == conditions.end())
    at = conditions.insert(conditions.end(), api::Condition{.type = type});
  if (at->status != on || at->last_transition_time.empty()) {
    at->status = on;
    at->last_transition_time = api::FormatTime(plan.in.now);
  }
  at->reason = std::move(reason);
  at->message = std::move(message);
  at->observed_generation = plan.in.job.generation;
}

namespace {

// Ranks shown in the status: 100 KB of JSON. A status of megabytes would not fit into etcd.
constexpr std::size_t kMostRanks = 1000;

using membership::EpochText;

// Members of the newest view that are gone, or have not installed it yet. For a first view the
// latter don't count: it is only on its way to its members.
std::vector<std::string> NotInRing(const PlanContext& plan) {
  std::vector<std::string> names;
  if (plan.in.view == nullptr) return names;
  for (const membership::Pod& pod : plan.in.view->pods) {
    const SidecarFacts* sidecar = FindSidecar(plan.in, pod.uid);
    const bool behind = plan.in.view->reason != membership::Reason::kBootstrap &&
                        sidecar != nullptr && sidecar->connected &&
                        sidecar->epoch < plan.in.view->epoch;
    if (behind || IsGone(plan.in, pod.uid)) names.push_back(pod.name);
  }
  return names;
}

std::string WhySuspended(const PlanContext& plan) {
  if (plan.gives_all) return "all pods leave for a more important job: see condition Preempted";
  const api::Spec& spec = plan.in.job.spec;
  if (plan.queued) return plan.in.queue->message;
  if (spec.run_policy.suspend) return "runPolicy.suspend is true: all pods are removed";
  if (spec.worker.replicas == 0) return "worker.replicas is 0: all pods are removed";
  return "the job is not suspended any more; the pods of before are waited for, they still end";
}

// The smaller view has an event already; that it is too small to train is another one.
void SetHeld(PlanContext& plan, const std::string& message) {
  constexpr char kReason[] = "BelowMinReplicas";
  const api::Condition* before = plan.in.job.status.Find("Running");
  if (before == nullptr || before->reason != kReason) plan.AddEvent(true, kReason, message);
  SetCondition(plan, "Running", false, kReason, message);
}

// Workers that don't call init() are reported only when enough pods have run for a moment: before,
// they are just starting.
void SetBeginning(PlanContext& plan) {
  constexpr char kReason[] = "WaitingForInit";
  const std::string message = WaitingForInit(plan);
  const api::Condition* before = plan.in.job.status.Find("Running");
  const bool said = before != nullptr && !before->status && before->reason == kReason;
  const bool runs = EnoughHaveRun(plan);
  if (runs && !said) plan.AddEvent(false, kReason, message);
  SetCondition(plan, "Running", false, runs ? kReason : "Starting", message);
}

void SetRunning(PlanContext& plan) {
  const membership::ViewPtr& view = plan.in.view;
  if (plan.outcome.ended()) {
    return SetCondition(plan, "Running", false, "JobEnded", plan.outcome.message);
  }
  if (plan.suspended) {
    return SetCondition(plan, "Running", false, SuspendedReason(plan), WhySuspended(plan));
  }
  if (!plan.stall_reason.empty()) {
    return SetCondition(plan, "Running", false, plan.stall_reason, plan.stall_message);
  }
  if (view == nullptr) return SetBeginning(plan);
  const std::string size = fmt::format("{} and {} in epoch {}", Plural(view->pods.size(), "pod"),
                                       Plural(view->ranks.size(), "rank"), EpochText(view->epoch));
  if (!view->train) {
    return SetHeld(plan, fmt::format("{} are held at the step boundary: minReplicas is {}", size,
                                     plan.in.job.spec.elastic_policy.min_replicas));
  }
  SetCondition(plan, "Running", true, "Training", size);
}

// What a recovery from quorum loss waits for is also emitted as an event, once.
bool SetStalled(PlanContext& plan) {
  if (plan.stall_reason.empty()) return false;
  const api::Condition* before = plan.in.job.status.Find("Rebuilding");
  const bool news = before == nullptr || !before->status || before->message != plan.stall_message;
  if (news && plan.stall_reason != kQuorumLost && plan.stall_reason != kStalled) {
    plan.AddEvent(true, plan.stall_reason, plan.stall_message);
  }
  SetCondition(plan, "Rebuilding", true, plan.stall_reason, plan.stall_message);
  return true;
}

void SetRebuilding(PlanContext& plan) {
  if (SetStalled(plan)) return;
  std::vector<std::string> names;
  if (!plan.outcome.ended() && !plan.suspended && !plan.finishing) names = NotInRing(plan);
  const api::Condition* before = plan.out.status.Find("Rebuilding");
  if (names.empty() && before == nullptr) return;
  if (names.empty()) {
    return SetCondition(plan, "Rebuilding", false, "AllIn", "every member is in the newest view");
  }
  SetCondition(plan, "Rebuilding", true, std::string(ReasonText(plan.in.view->reason)),
               fmt::format("epoch {} is not in use yet by {}", EpochText(plan.in.view->epoch),
                           Names(names)));
}

// Ranks that others wait for. They may compute for a long time, or never submit the tensor.
void SetRanksMissing(PlanContext& plan) {
  constexpr char kType[] = "RanksMissing";
  const bool runs = !plan.outcome.ended() && !plan.suspended && !plan.finishing;
  const auto stalls = runs ? DescribeStalls(plan.in) : std::vector<std::string>();
  const bool before = plan.out.status.Is(kType);
  if (stalls.empty()) {
    if (before && runs) {
      SetCondition(plan, kType, false, "AllCame", "no rank is waited for any more");
    } else if (before) {
      SetCondition(plan, kType, false, "NotRunning", "the job trains no more");
    }
    return;
  }
  const std::string message = Listed(stalls, "; ");
  SetCondition(plan, kType, true, kType, message);
  if (!before) plan.AddEvent(true, kType, message);
}

void SetSuspended(PlanContext& plan) {
  const bool before = plan.out.status.Is("Suspended");
  const bool suspended = plan.suspended && !plan.gives_all;
  if (!suspended && !before) return;
  const std::string reason = suspended       ? SuspendedReason(plan)
                             : plan.in.queue ? "Admitted"
                                             : "Resumed";
  const std::string message = suspended       ? WhySuspended(plan)
                              : plan.in.queue ? plan.in.queue->message
                                              : "the job is not suspended any more";
  SetCondition(plan, "Suspended", suspended, reason, message);
  if (suspended != before) plan.AddEvent(IsQueueTrouble(plan), reason, message);
}

void SetEnd(PlanContext& plan) {
  if (!plan.outcome.ended()) return;
  api::Status& status = plan.out.status;
  const std::string type = plan.outcome.succeeded ? "Succeeded" : "Failed";
  if (status.Is(type)) return;
  SetCondition(plan, type, true, plan.outcome.reason, plan.outcome.message);
  status.completion_time = api::FormatTime(plan.in.now);
  plan.AddEvent(plan.outcome.failed, plan.outcome.succeeded ? "Succeeded" : plan.outcome.reason,
                plan.outcome.message);
  // The time to live after the end begins now.
  if (plan.in.job.spec.run_policy.ttl_seconds_after_finished) plan.LookAgainAt(plan.in.now);
}

// Describes a drain that could not wait for the end of a step any longer, which costs as much as a
// loss. Empty if the newest view was not caused by one.
std::string HowTorn(const PlanContext& plan) {
  const membership::ViewPtr& view = plan.in.view;
  if (view->planned || view->reason != membership::Reason::kPodDrained) return "";
  const api::Condition* why = plan.in.job.status.Find(kNoStepEnds);
  return "; who left did so in the middle of a step" +
         (why != nullptr && why->status ? " (" + why->message + ")" : "");
}

void SetRing(PlanContext& plan) {
  api::Status& status = plan.out.status;
  const membership::ViewPtr& view = plan.in.view;
  if (plan.suspended) {
    status.world_size = status.ring_omitted = 0;
    status.ring.clear();
    return;
  }
  if (view == nullptr || plan.outcome.ended()) return;
  if (view->epoch > status.epoch) {
    const bool loss = !view->planned && (view->reason == membership::Reason::kWorkerLost ||
                                         view->reason == membership::Reason::kPodLost ||
                                         view->reason == membership::Reason::kLinkBroken ||
                                         view->reason == membership::Reason::kQuorumRecovered);
    const std::string torn = HowTorn(plan);
    plan.AddEvent(loss || !torn.empty(), std::string(ReasonText(view->reason)),
                  fmt::format("epoch {}: world size {}, before {}{}", EpochText(view->epoch),
                              view->ranks.size(), status.world_size, torn));
  }
  // A recovery from quorum loss has already written its new lineage.
  status.epoch = std::max(status.epoch, view->epoch);
  status.world_size = static_cast<int>(view->ranks.size());
  status.ring.clear();
  const std::size_t shown = std::min(view->ranks.size(), kMostRanks);
  status.ring_omitted = static_cast<int>(view->ranks.size() - shown);
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const membership::RankEntry& entry = view->ranks[rank];
    const membership::Pod& pod = view->pods[entry.pod];
    status.ring.push_back(
        {static_cast<int>(rank), pod.name, static_cast<int>(entry.slot), pod.node});
  }
}

// The job's deadline counts from the moment when as many pods run as the job needs to train.
// Waiting in a queue or for images does not count.
void SetRunningSince(PlanContext& plan) {
  api::Status& status = plan.out.status;
  if (plan.suspended || !status.running_since.empty()) return;
  int running = 0;
  std::optional<Time> since;
  for (const PodFacts* pod : plan.active) {
    if (!pod->running_since) continue;
    ++running;
    // The pod trained before this time was recorded, under an earlier version of the operator.
    if (InView(plan.in, pod->uid))
      since = std::min(since.value_or(plan.in.now), *pod->running_since);
  }
  if (!since && running < LeastTogether(plan)) return;
  const Time start = api::ParseTime(status.start_time).value_or(plan.in.now);
  const Time begin = since ? std::max(*since, start) : plan.in.now;
  status.running_since = api::FormatTime(begin);
  const auto& deadline = plan.in.job.spec.run_policy.active_deadline_seconds;
  if (deadline) plan.LookAgainAt(begin + std::chrono::seconds(*deadline));
}

void SetRebuilds(PlanContext& plan) {
  api::Status& status = plan.out.status;
  for (const job::Rebuild& rebuild : plan.in.rebuilds) {
    const std::uint64_t last = status.last_rebuild ? status.last_rebuild->epoch : 0;
    if (rebuild.epoch < last) continue;
    const std::int64_t counted = rebuild.epoch == last ? status.last_rebuild->steps_lost : 0;
    status.steps_lost += rebuild.steps_lost - counted;
    if (rebuild.steps_lost > counted) {
      plan.AddEvent(
          true, "StepsLost",
          fmt::format("epoch {} ({}) goes on {} before the newest that a lost worker is known "
                      "to have completed",
                      EpochText(rebuild.epoch), rebuild.reason,
                      Plural(static_cast<std::size_t>(rebuild.steps_lost), "step")));
    }
    status.last_rebuild = api::LastRebuild{rebuild.epoch, rebuild.reason,
                                           job::TotalSeconds(rebuild.seconds), rebuild.steps_lost};
  }
}

void CountPods(PlanContext& plan) {
  api::Status& status = plan.out.status;
  int running = 0, succeeded = 0;
  for (const PodFacts& pod : plan.in.pods) {
    running += !pod.ended() && pod.phase == PodPhase::kRunning ? 1 : 0;
    succeeded += pod.phase == PodPhase::kSucceeded && (plan.finishing || !pod.leaving()) ? 1 : 0;
  }
  status.worker.active = running;
  // Deleting succeeded pods must not lower the number.
  status.worker.succeeded =
      plan.outcome.ended() ? std::max(status.worker.succeeded, succeeded) : succeeded;
  status.replicas = static_cast<int>(plan.active.size());
  status.selector = fmt::format("{}={},{}={}", api::kJobUidLabel, plan.in.job.uid,
                                api::kJobRoleLabel, api::kWorkerRole);
}

std::string StateWord(const PlanContext& plan) {
  if (plan.outcome.ended()) return plan.outcome.succeeded ? "Succeeded" : "Failed";
  if (plan.queued) return "Queued";
  if (plan.gives_all || WaitsSincePreempted(plan.out.status)) return "Pending";
  if (plan.suspended) return "Suspended";
  if (plan.finishing) return "Finishing";
  if (plan.in.view == nullptr) return plan.out.status.Is("Scheduled") ? "Starting" : "Pending";
  if (plan.out.status.Is("Rebuilding")) return "Rebuilding";
  return plan.in.view->train ? "Running" : "Held";
}

}  // namespace

std::vector<std::string> DescribeStalls(const Snapshot& in) {
  std::vector<std::string> texts;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!sidecar.connected || in.view == nullptr || sidecar.epoch != in.view->epoch) continue;
    for (const job::Stall& stall : sidecar.stalls) {
      const Time since = sidecar.stalls_at - std::chrono::milliseconds(stall.waited_ms);
      const std::string what = job::Describe(stall);
      const bool told = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
        // Reported by a rank that has waited less long.
        return text.rfind(what + ", since ", 0) == 0;
      });
      if (!told) texts.push_back(what + ", since " + api::FormatTime(since));
    }
  }
  return texts;
}

std::string SuspendedReason(const PlanContext& plan) {
  if (plan.queued) return plan.in.queue->reason;
  if (plan.gives_all) return "Preempted";
  // Pods from before still end, for the reason that was reported then.
  const api::Condition* before = plan.in.job.status.Find("Suspended");
  return plan.in.job.Suspended() || before == nullptr ? "Suspended" : before->reason;
}

void WriteStatus(PlanContext& plan) {
  api::Status& status = plan.out.status;
  status.observed_generation = plan.in.job.generation;
  if (status.Find("Created") == nullptr) {
    SetCondition(plan, "Created", true, "Accepted", "the operator has taken up the job");
  }
  if (plan.suspended) {
    if (!plan.gives_all) status.start_time.clear();  // it keeps its place in line
    status.running_since.clear();
    status.times_given_back = 0;
    status.last_given_back_time.clear();
  } else if (status.start_time.empty()) {
    status.start_time = api::FormatTime(plan.in.now);
  }
  SetRunningSince(plan);
  // When pods end, the number of pods with a node is of no interest.
  if (!plan.outcome.ended() && !plan.suspended && !plan.finishing) SetStarting(plan);
  if (plan.suspended) {  // its pods are deleted, so their problems don't matter
    std::erase_if(status.conditions, [&plan](const auto& c) {
      return (c.type == "Scheduled" && !plan.queued) || c.type == "Started";
    });
  }
  SetQueued(plan);
  SetRebuilding(plan);
  SetRunning(plan);
  SetRanksMissing(plan);
  SetCantJoin(plan);
  SetNoStepEnds(plan);
  SetPreempted(plan);
  SetSuspended(plan);
  SetEnd(plan);
  SetRing(plan);
  SetRebuilds(plan);
  CountPods(plan);
  status.state = StateWord(plan);
}

}  // namespace ringmaster::planner
