// Phases 1 to 3: what has ended and why, whether the job has ended, and the clean-up afterwards.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/failure_policy/failure_policy.h"
#include "operator/api/exit_code.h"
#include "operator/planner/plan_context.h"

namespace ringmaster::planner {
namespace {

using api::FailureAction;

// The program itself causes deaths by these signals; TERM, KILL and the like come from outside.
bool IsCrash(int exit_code) {
  constexpr std::array kCrashes = {SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  const auto signal = api::SignalOfExit(exit_code);
  return signal && std::find(kCrashes.begin(), kCrashes.end(), *signal) != kCrashes.end();
}

bool IsApplicationFault(int exit_code) {
  return IsCrash(exit_code) || failure_policy::IsOwnFailure(exit_code);
}

bool IsFromOutside(const std::string& reason) { return !reason.empty() && reason != "OOMKilled"; }

FailureAction ActionFor(const api::FailurePolicy& policy, std::optional<int> exit_code,
                        const std::string& reason) {
  return failure_policy::ActionForPod(policy.rules, exit_code, reason, IsFromOutside(reason));
}

// backoffLimit counts this end.
bool IsFault(const PodFacts& pod) {
  if (!pod.reason.empty()) return pod.reason == "OOMKilled";
  // An init container failed: no outside cause did that, and a replacement may well fail again.
  return !pod.exit_code || IsApplicationFault(*pod.exit_code);
}

// "exited with 3", "was ended by signal 9"
std::string HowItEnded(int exit_code) {
  const auto signal = api::SignalOfExit(exit_code);
  return signal ? fmt::format("was ended by signal {}", *signal)
                : fmt::format("exited with {}", exit_code);
}

std::string WhatEnded(const PodFacts& pod) {
  if (pod.exit_code) return "its worker " + HowItEnded(*pod.exit_code);
  if (!pod.failed_init) return "it ended before its worker ran";
  return fmt::format("its container {} {}", pod.failed_init->name,
                     HowItEnded(pod.failed_init->exit_code));
}

std::string ExitText(const PodFacts& pod) {
  if (!pod.exit_code && IsFromOutside(pod.reason)) {
    return fmt::format("it was ended from outside ({})", pod.reason);
  }
  std::string text = WhatEnded(pod);
  if (!pod.reason.empty()) text += fmt::format(" ({})", pod.reason);
  if (!pod.last_words.empty()) text += ": " + pod.last_words;
  return text;
}

void Fail(PlanContext& plan, std::string reason, std::string message) {
  if (plan.outcome.ended()) return;
  plan.outcome = {.failed = true, .reason = std::move(reason), .message = std::move(message)};
}

void CountFault(PlanContext& plan, const std::string& what) {
  ++plan.out.status.faults;
  plan.last_fault = what;
}

void CountPod(PlanContext& plan, const PodFacts& pod) {
  api::Status& status = plan.out.status;
  status.accounted_pods.push_back(pod.uid);
  BlameForPod(plan, pod);
  if (pod.leaving() || pod.phase == PodPhase::kSucceeded) return;
  ++status.worker.failed;
  const FailureAction action =
      ActionFor(plan.in.job.spec.failure_policy, pod.exit_code, pod.reason);
  const std::string what = fmt::format("pod {} failed: {}", pod.name, ExitText(pod));
  if (action != FailureAction::kIgnore && IsFault(pod)) CountFault(plan, what);
  if (plan.finishing) {
    const bool own =
        pod.exit_code && failure_policy::IsOwnFailure(*pod.exit_code) && !IsFromOutside(pod.reason);
    const bool agreed = plan.in.view == nullptr || InView(plan.in, pod.uid);
    if (own && agreed) {
      Fail(plan, "WorkerFailedAtTheEnd", what + ", after all ranks had agreed to end");
    } else if (own && action == FailureAction::kFailJob) {
      Fail(plan, "WorkerFailed", what + ", just before the other ranks agreed to end");
    }
    return;
  }
  plan.AddEvent(true, "PodFailed", what, pod.name);
  if (action == FailureAction::kFailJob) {
    const bool ruled =
        failure_policy::RuleFor(plan.in.job.spec.failure_policy.rules, pod.exit_code, pod.reason);
    Fail(plan, "WorkerFailed",
         what + (ruled ? "; a rule of failurePolicy says FailJob"
                       : "; no rule of failurePolicy names that exit code"));
  } else {
    ++status.pods_replaced;
  }
}

void CountWorkerExits(PlanContext& plan) {
  api::Status& status = plan.out.status;
  for (const job::WorkerExit& exit : plan.in.exits) {
    // A worker that is not restarted ends with its pod, and is counted with the pod.
    if (exit.by_us || !exit.restarting) continue;
    ++status.worker_restarts;
    BlameForExit(plan, exit);
    const FailureAction action = ActionFor(plan.in.job.spec.failure_policy, exit.exit_code, "");
    const std::string what =
        fmt::format("worker {} of pod {} {}", exit.slot, exit.pod_name, HowItEnded(exit.exit_code));
    if (action != FailureAction::kIgnore && IsApplicationFault(exit.exit_code)) {
      CountFault(plan, what);
    }
    plan.AddEvent(true, "WorkerRestarted", what + " and was started again in place", exit.pod_name);
  }
  plan.out.exits_counted = plan.in.exits.size();
}

constexpr char kAllKilled[] = "all workers that had the job's state were killed";

// All were killed, in pods that live. Crashes don't count here: they are counted one by one.
bool AllWereKilled(const Snapshot& in) {
  bool killed = false;
  for (const SidecarFacts& sidecar : in.sidecars) {
    const PodFacts* pod = FindPod(in, sidecar.pod_uid);
    if (!sidecar.report || !sidecar.report->resigned || !sidecar.last_exit) continue;
    if (pod == nullptr || pod->leaving()) continue;
    if (IsApplicationFault(*sidecar.last_exit)) return false;
    const auto action = ActionFor(in.job.spec.failure_policy, *sidecar.last_exit, "");
    killed = killed || action != FailureAction::kIgnore;
  }
  return killed;
}

// The first view of a lineage that begins from the checkpoint may already have successors.
bool HasBegunAgain(const Snapshot& in) {
  const api::Status& known = in.job.status;
  const std::uint64_t lineage = membership::EpochLineage(in.view->epoch);
  if (lineage <= 1 || known.epoch >= membership::MakeEpoch(lineage, 1)) return false;
  // There was no view before.
  const bool founded_again = in.view->parent == 0 && known.world_size == 0;
  if (founded_again) return false;
  if (in.view->reason == membership::Reason::kBootstrap) return true;
  const api::Condition* rebuilding = known.Find("Rebuilding");
  return in.view->reason != membership::Reason::kQuorumRecovered && rebuilding != nullptr &&
         rebuilding->reason == kStartingAgain;
}

// A cause that kills all workers repeatedly must finally end the job.
void CountStartAgain(PlanContext& plan) {
  if (plan.in.view == nullptr || !HasBegunAgain(plan.in)) return;
  ++plan.out.status.restarts_from_checkpoint;
  if (AllWereKilled(plan.in)) CountFault(plan, kAllKilled);
}

// Evaluates pods that ended with 0 although no sidecar reported an agreement to end.
void EvaluateEarlyExits(PlanContext& plan) {
  for (const PodFacts& pod : plan.in.pods) {
    if (pod.phase != PodPhase::kSucceeded || pod.leaving()) continue;
    const Time patience =
        std::max(pod.ended_at.value_or(pod.created) + kFinishGrace, HeardAllBy(plan.in));
    if (plan.in.now < patience) {
      plan.LookAgainAt(patience);
      continue;
    }
    return Fail(plan, "WorkerEndedEarly",
                fmt::format("pod {} exited with 0 while others still train: a script ends with "
                            "shutdown() on all ranks, or by leaving the interpreter on all of them",
                            pod.name));
  }
}

// "all ranks of 2 pods ended with 0"
std::string HowAllEnded(std::size_t succeeded, std::size_t killed) {
  if (succeeded > 0) return fmt::format("all ranks of {} ended with 0", Plural(succeeded, "pod"));
  return fmt::format("all ranks had agreed to end; then {} ended from outside",
                     killed == 1 ? "the last pod was" : "all pods were");
}

// The pods that decide about success are those of the last view, or all if no view is known any
// more.
void EvaluateSuccess(PlanContext& plan) {
  std::size_t succeeded = 0, killed = 0, others = 0;
  for (const PodFacts& pod : plan.in.pods) {
    if (plan.in.view != nullptr && !InView(plan.in, pod.uid)) {
      others += IsAboutToFail(plan, pod) ? 1 : 0;
      continue;
    }
    // A leaving pod may end with 0 too, which says nothing about the job unless all ranks had
    // agreed to end. If there never was a view, no pod took over from one that failed.
    if (pod.phase == PodPhase::kSucceeded && (plan.finishing || !pod.leaving())) {
      ++succeeded;
    } else if (!pod.ended() || (plan.in.view == nullptr && !pod.leaving())) {
      ++others;
    } else if (plan.finishing) {
      ++killed;  // after the training: a failure of its own would have failed the job
    }
  }
  if (others > 0 || succeeded + killed == 0) return;
  plan.outcome = {
      .succeeded = true, .reason = "AllRanksDone", .message = HowAllEnded(succeeded, killed)};
}

int Limit(const PlanContext& plan) { return plan.in.job.spec.run_policy.backoff_limit; }

void EvaluateFaults(PlanContext& plan) {
  if (plan.out.status.faults <= Limit(plan)) return;
  Fail(plan, "BackoffLimitExceeded",
       fmt::format("the application failed {}; backoffLimit is {}{}{}",
                   Plural(static_cast<std::size_t>(plan.out.status.faults), "time"), Limit(plan),
                   plan.last_fault.empty() ? "" : "; the last time: ", plan.last_fault));
}

void EvaluateDeadlines(PlanContext& plan) {
  const api::Spec& spec = plan.in.job.spec;
  const auto started = api::ParseTime(plan.out.status.running_since);
  if (spec.run_policy.active_deadline_seconds && started) {
    const Time end = *started + std::chrono::seconds(*spec.run_policy.active_deadline_seconds);
    if (plan.in.now >= end) {
      return Fail(plan, "DeadlineExceeded",
                  fmt::format("it ran longer than activeDeadlineSeconds ({} s)",
                              *spec.run_policy.active_deadline_seconds));
    }
    plan.LookAgainAt(end);
  }
  EvaluateFaults(plan);
  if (spec.elastic_policy.on_below_min == api::OnBelowMin::kFailJob && plan.in.view != nullptr &&
      !plan.in.view->train && !plan.finishing) {
    Fail(plan, "BelowMinReplicas",
         fmt::format("{} left, minReplicas is {}, and onBelowMin says FailJob",
                     Plural(plan.in.view->pods.size(), "pod"), spec.elastic_policy.min_replicas));
  }
}

void EvaluateInit(PlanContext& plan) {
  if (HasHadView(plan.in)) return;
  const auto timeout = std::chrono::seconds(plan.in.job.spec.init_timeout_seconds);
  std::vector<std::string> missing;
  for (const PodFacts* pod : plan.active) {
    const SidecarFacts* sidecar = FindSidecar(plan.in, pod->uid);
    if (plan.away.count(pod->uid) != 0) continue;  // a replacement is on its way
    if (!pod->running_since || (sidecar != nullptr && sidecar->ready)) continue;
    const Time end = std::max(*pod->running_since + timeout, HeardAllBy(plan.in));
    if (plan.in.now < end) {
      plan.LookAgainAt(end);
    } else {
      missing.push_back(fmt::format("{} ({})", pod->name, WhatIsMissing(sidecar)));
    }
  }
  if (!missing.empty()) {
    Fail(plan, "InitTimeout",
         fmt::format("after initTimeoutSeconds ({} s) these have not come to init(): {}",
                     timeout.count(), Names(missing)));
  }
}

// Ranks may have agreed to end before a suspension, and their pods may still exist. The resumed job
// begins anew, so that was not its end.
bool EndedAnEarlierRun(const PlanContext& plan, const SidecarFacts& sidecar) {
  if (plan.suspended) return true;
  const PodFacts* pod = FindPod(plan.in, sidecar.pod_uid);
  return plan.in.job.status.Find("Suspended") != nullptr && (pod == nullptr || pod->deleting);
}

void CountFinished(PlanContext& plan) {
  std::uint64_t& finished = plan.out.status.finished_epoch;
  if (plan.suspended) finished = 0;
  for (const SidecarFacts& sidecar : plan.in.sidecars) {
    if (!EndedAnEarlierRun(plan, sidecar)) finished = std::max(finished, sidecar.finished_epoch);
  }
  plan.finishing = finished != 0;
}

// `all`: also pods that have ended.
void DeletePods(PlanContext& plan, bool all, const std::string& reason) {
  for (const PodFacts& pod : plan.in.pods) {
    const bool runs = !pod.ended() || pod.lingers;
    if (!pod.deleting && (runs || all)) plan.out.deletes.push_back({pod.name, pod.uid, reason});
  }
}

void DeleteJobInTime(PlanContext& plan) {
  const auto ttl = plan.in.job.spec.run_policy.ttl_seconds_after_finished;
  const auto completed = api::ParseTime(plan.in.job.status.completion_time);
  if (!ttl || !completed) return;
  const Time end = *completed + std::chrono::seconds(*ttl);
  plan.out.delete_job = plan.in.now >= end;
  if (!plan.out.delete_job) plan.LookAgainAt(end);
}

}  // namespace

bool IsAboutToFail(PlanContext& plan, const PodFacts& pod) {
  if (pod.ended() || pod.leaving()) return false;
  const SidecarFacts* sidecar = FindSidecar(plan.in, pod.uid);
  if (sidecar == nullptr || !sidecar->last_exit) return false;
  const bool fails = failure_policy::IsOwnFailure(*sidecar->last_exit) &&
                     ActionFor(plan.in.job.spec.failure_policy, *sidecar->last_exit, "") ==
                         FailureAction::kFailJob;
  const Time patience = plan.in.view_since + kFinishGrace;
  if (!fails || plan.in.now >= patience) return false;
  plan.LookAgainAt(patience);
  return true;
}

std::string WhatIsMissing(const SidecarFacts* sidecar) {
  if (sidecar == nullptr || !sidecar->connected) return "its sidecar has not registered";
  if (sidecar->missing_slots.empty()) return "no worker has connected";
  if (sidecar->missing_slots.size() == 1)
    return fmt::format("slot {} has not called init()", sidecar->missing_slots[0]);
  return fmt::format("slots {} have not called init()", fmt::join(sidecar->missing_slots, ", "));
}

void CountEnds(PlanContext& plan) {
  api::Status& status = plan.out.status;
  CountFinished(plan);
  // Keeps only pods that still exist, so that the list stays short.
  std::erase_if(status.accounted_pods,
                [&](const std::string& uid) { return FindPod(plan.in, uid) == nullptr; });
  if (JobHasEnded(plan.in) || plan.suspended) {
    plan.out.exits_counted = plan.in.exits.size();
    return;
  }
  for (const PodFacts& pod : plan.in.pods) {
    // Counted pods are deleted, which makes room in the list. While all ranks end nothing is
    // replaced, so the list then grows to at most the job's number of pods.
    if (status.accounted_pods.size() >= kMostUids && !plan.finishing) break;
    if (pod.ended() && !IsAccounted(plan.in, pod.uid)) CountPod(plan, pod);
  }
  CountWorkerExits(plan);
  CountStartAgain(plan);
}

void EvaluateOutcome(PlanContext& plan) {
  for (const char* type : {"Succeeded", "Failed"}) {
    const api::Condition* condition = plan.in.job.status.Find(type);
    if (condition == nullptr || !condition->status) continue;
    const bool succeeded = std::string(type) == "Succeeded";
    plan.outcome = {succeeded, !succeeded, condition->reason, condition->message};
    return;
  }
  if (plan.suspended) return;
  if (!plan.outcome.ended()) EvaluateSuccess(plan);
  if (plan.outcome.ended()) return;
  // The first outcome found is the one that counts.
  EvaluateDeadlines(plan);
  if (!plan.finishing) EvaluateEarlyExits(plan);
  EvaluateInit(plan);
}

void EvaluateStartAgain(PlanContext& plan) {
  if (!AllWereKilled(plan.in) || plan.out.status.faults < Limit(plan)) return;
  CountFault(plan, kAllKilled);
  EvaluateFaults(plan);
}

void CleanUp(PlanContext& plan) {
  const bool ended = plan.outcome.ended();
  if (!ended && !plan.suspended) return;
  const api::CleanPodPolicy policy = plan.in.job.spec.run_policy.clean_pod_policy;
  const bool all = plan.suspended || policy == api::CleanPodPolicy::kAll;
  if (!ended || policy != api::CleanPodPolicy::kNone) {
    DeletePods(plan, all, ended ? "JobEnded" : plan.gives_all ? "Preempted" : "Suspended");
  }
  if (ended) DeleteJobInTime(plan);
}

}  // namespace ringmaster::planner
