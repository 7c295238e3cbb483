// Phases 1 to 3: what has ended and whose fault it was, whether the job has ended, and cleaning up
// after it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/failure_policy/failure_policy.h"
#include "operator/api/exit_code.h"
#include "operator/planner/work.h"

namespace ringmaster::planner {
namespace {

using api::FailureAction;

// Death by these is the program's own doing; TERM, KILL and the like come from outside.
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

// Whether backoffLimit counts it.
bool IsFault(const PodFacts& pod) {
  if (!pod.reason.empty()) return pod.reason == "OOMKilled";
  // Failed in an init container: nothing from outside did that, and its replacement may well do the
  // same.
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

void Fail(Work& work, std::string reason, std::string message) {
  if (work.verdict.ended()) return;
  work.verdict = {.failed = true, .reason = std::move(reason), .message = std::move(message)};
}

void CountFault(Work& work, const std::string& what) {
  ++work.out.status.faults;
  work.last_fault = what;
}

void CountPod(Work& work, const PodFacts& pod) {
  api::Status& status = work.out.status;
  status.accounted_pods.push_back(pod.uid);
  BlameForPod(work, pod);
  if (pod.leaving() || pod.phase == PodPhase::kSucceeded) return;
  ++status.worker.failed;
  const FailureAction action =
      ActionFor(work.in.job.spec.failure_policy, pod.exit_code, pod.reason);
  const std::string what = fmt::format("pod {} failed: {}", pod.name, ExitText(pod));
  if (action != FailureAction::kIgnore && IsFault(pod)) CountFault(work, what);
  if (work.finishing) {
    if (pod.exit_code && failure_policy::IsOwnFailure(*pod.exit_code) &&
        !IsFromOutside(pod.reason)) {
      Fail(work, "WorkerFailedAtTheEnd", what + ", after all ranks had agreed to end");
    }
    return;
  }
  work.Say(true, "PodFailed", what, pod.name);
  if (action == FailureAction::kFailJob) {
    const bool ruled =
        failure_policy::RuleFor(work.in.job.spec.failure_policy.rules, pod.exit_code, pod.reason);
    Fail(work, "WorkerFailed",
         what + (ruled ? "; a rule of failurePolicy says FailJob"
                       : "; no rule of failurePolicy names that exit code"));
  } else {
    ++status.pods_replaced;
  }
}

void CountWorkerExits(Work& work) {
  api::Status& status = work.out.status;
  for (const job::WorkerExit& exit : work.in.exits) {
    // Where it is not restarted its pod ends with it, and is counted then.
    if (exit.by_us || !exit.restarting) continue;
    ++status.worker_restarts;
    BlameForExit(work, exit);
    const FailureAction action = ActionFor(work.in.job.spec.failure_policy, exit.exit_code, "");
    const std::string what =
        fmt::format("worker {} of pod {} {}", exit.slot, exit.pod_name, HowItEnded(exit.exit_code));
    if (action != FailureAction::kIgnore && IsApplicationFault(exit.exit_code)) {
      CountFault(work, what);
    }
    work.Say(true, "WorkerRestarted", what + " and was started again in place", exit.pod_name);
  }
  work.out.exits_counted = work.in.exits.size();
}

constexpr char kAllKilled[] = "all workers that had the job's state were killed";

// In pods that live, and not by crashes, which are counted one by one.
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

// One that kills all workers again and again must come to an end.
void CountStartAgain(Work& work) {
  const membership::ViewPtr& view = work.in.view;
  if (view == nullptr || view->epoch <= work.in.job.status.epoch) return;
  const bool again =
      membership::EpochLineage(view->epoch) > 1 && view->reason == membership::Reason::kBootstrap;
  if (again && AllWereKilled(work.in)) CountFault(work, kAllKilled);
}

// A pod that ended with 0 although nobody said that the ranks had agreed to end.
void JudgeEarlyExits(Work& work) {
  for (const PodFacts& pod : work.in.pods) {
    if (pod.phase != PodPhase::kSucceeded || pod.leaving()) continue;
    const Time patience =
        std::max(pod.ended_at.value_or(pod.created) + kFinishGrace, HeardAllBy(work.in));
    if (work.in.now < patience) {
      work.LookAgainAt(patience);
      continue;
    }
    return Fail(work, "WorkerEndedEarly",
                fmt::format("pod {} exited with 0 while others still train: a script ends with "
                            "shutdown() on all ranks, or by leaving the interpreter on all of them",
                            pod.name));
  }
}

// Pods that decide about success: those of the last view, or all where no view is known any more.
void JudgeSuccess(Work& work) {
  std::size_t succeeded = 0, others = 0;
  for (const PodFacts& pod : work.in.pods) {
    if (work.in.view != nullptr && !InView(work.in, pod.uid)) continue;
    // A pod that left may end with 0 too: that says nothing about the job unless all had agreed to
    // end. Where there never was a view, nobody went on in the place of one that failed.
    if (pod.phase == PodPhase::kSucceeded && (work.finishing || !pod.leaving())) {
      ++succeeded;
    } else if (!pod.ended() || (work.in.view == nullptr && !pod.leaving())) {
      ++others;
    }
  }
  if (others > 0 || succeeded == 0) return;
  work.verdict = {.succeeded = true,
                  .reason = "AllRanksDone",
                  .message = fmt::format("all ranks of {} ended with 0", Plural(succeeded, "pod"))};
}

int Limit(const Work& work) { return work.in.job.spec.run_policy.backoff_limit; }

void JudgeFaults(Work& work) {
  if (work.out.status.faults <= Limit(work)) return;
  Fail(work, "BackoffLimitExceeded",
       fmt::format("the application failed {}; backoffLimit is {}{}{}",
                   Plural(static_cast<std::size_t>(work.out.status.faults), "time"), Limit(work),
                   work.last_fault.empty() ? "" : "; the last time: ", work.last_fault));
}

void JudgeDeadlines(Work& work) {
  const api::Spec& spec = work.in.job.spec;
  const auto started = api::ParseTime(work.out.status.start_time);
  if (spec.run_policy.active_deadline_seconds && started) {
    const Time end = *started + std::chrono::seconds(*spec.run_policy.active_deadline_seconds);
    if (work.in.now >= end) {
      return Fail(work, "DeadlineExceeded",
                  fmt::format("it ran longer than activeDeadlineSeconds ({} s)",
                              *spec.run_policy.active_deadline_seconds));
    }
    work.LookAgainAt(end);
  }
  JudgeFaults(work);
  if (spec.elastic_policy.on_below_min == api::OnBelowMin::kFailJob && work.in.view != nullptr &&
      !work.in.view->train && !work.finishing) {
    Fail(work, "BelowMinReplicas",
         fmt::format("{} left, minReplicas is {}, and onBelowMin says FailJob",
                     Plural(work.in.view->pods.size(), "pod"), spec.elastic_policy.min_replicas));
  }
}

void JudgeInit(Work& work) {
  if (work.in.view != nullptr || work.in.job.status.epoch != 0) return;
  const auto timeout = std::chrono::seconds(work.in.job.spec.init_timeout_seconds);
  std::string who;
  for (const PodFacts* pod : work.active) {
    const SidecarFacts* sidecar = FindSidecar(work.in, pod->uid);
    if (work.away.count(pod->uid) != 0) continue;  // another one is on its way
    if (!pod->running_since || (sidecar != nullptr && sidecar->ready)) continue;
    const Time end = std::max(*pod->running_since + timeout, HeardAllBy(work.in));
    if (work.in.now < end) {
      work.LookAgainAt(end);
    } else {
      who += fmt::format("{}{} ({})", who.empty() ? "" : ", ", pod->name, WhatIsMissing(sidecar));
    }
  }
  if (!who.empty()) {
    Fail(work, "InitTimeout",
         fmt::format("after initTimeoutSeconds ({} s) these have not come to init(): {}",
                     timeout.count(), who));
  }
}

// Before a suspension ranks may have agreed to end, and their pods may not be gone yet. The job
// that was resumed begins anew: it is not its end.
bool EndedAnEarlierRun(const Work& work, const SidecarFacts& sidecar) {
  if (work.suspended) return true;
  const PodFacts* pod = FindPod(work.in, sidecar.pod_uid);
  return work.in.job.status.Find("Suspended") != nullptr && (pod == nullptr || pod->deleting);
}

void CountFinished(Work& work) {
  std::uint64_t& finished = work.out.status.finished_epoch;
  if (work.suspended) finished = 0;
  for (const SidecarFacts& sidecar : work.in.sidecars) {
    if (!EndedAnEarlierRun(work, sidecar)) finished = std::max(finished, sidecar.finished_epoch);
  }
  work.finishing = finished != 0;
}

// `all`: those that have ended, too.
void DeletePods(Work& work, bool all, const std::string& reason) {
  for (const PodFacts& pod : work.in.pods) {
    const bool runs = !pod.ended() || pod.lingers;
    if (!pod.deleting && (runs || all)) work.out.deletes.push_back({pod.name, pod.uid, reason});
  }
}

void DeleteJobInTime(Work& work) {
  const auto ttl = work.in.job.spec.run_policy.ttl_seconds_after_finished;
  const auto completed = api::ParseTime(work.in.job.status.completion_time);
  if (!ttl || !completed) return;
  const Time end = *completed + std::chrono::seconds(*ttl);
  work.out.delete_job = work.in.now >= end;
  if (!work.out.delete_job) work.LookAgainAt(end);
}

}  // namespace

std::string WhatIsMissing(const SidecarFacts* sidecar) {
  if (sidecar == nullptr || !sidecar->attending) return "its sidecar has not registered";
  if (sidecar->missing_slots.empty()) return "no worker has connected";
  return fmt::format("slot {} has not called init()", fmt::join(sidecar->missing_slots, ", slot "));
}

void CountEnds(Work& work) {
  api::Status& status = work.out.status;
  CountFinished(work);
  // Only of pods that still exist, so that the list stays short.
  std::erase_if(status.accounted_pods,
                [&](const std::string& uid) { return FindPod(work.in, uid) == nullptr; });
  if (JobHasEnded(work.in) || work.suspended) {
    work.out.exits_counted = work.in.exits.size();
    return;
  }
  for (const PodFacts& pod : work.in.pods) {
    if (pod.ended() && !IsAccounted(work.in, pod.uid)) CountPod(work, pod);
  }
  CountWorkerExits(work);
  CountStartAgain(work);
}

void Judge(Work& work) {
  for (const char* type : {"Succeeded", "Failed"}) {
    const api::Condition* condition = work.in.job.status.Find(type);
    if (condition == nullptr || !condition->status) continue;
    const bool succeeded = std::string(type) == "Succeeded";
    work.verdict = {succeeded, !succeeded, condition->reason, condition->message};
    return;
  }
  if (work.suspended) return;
  if (!work.verdict.ended()) JudgeSuccess(work);
  if (work.verdict.ended()) return;
  // What is found first counts.
  JudgeDeadlines(work);
  if (!work.finishing) JudgeEarlyExits(work);
  JudgeInit(work);
}

void JudgeStartAgain(Work& work) {
  if (!AllWereKilled(work.in) || work.out.status.faults < Limit(work)) return;
  CountFault(work, kAllKilled);
  JudgeFaults(work);
}

void CleanUp(Work& work) {
  const bool ended = work.verdict.ended();
  if (!ended && !work.suspended) return;
  const api::CleanPodPolicy policy = work.in.job.spec.run_policy.clean_pod_policy;
  const bool all = work.suspended || policy == api::CleanPodPolicy::kAll;
  if (!ended || policy != api::CleanPodPolicy::kNone) {
    DeletePods(work, all, ended ? "JobEnded" : "Suspended");
  }
  if (ended) DeleteJobInTime(work);
}

}  // namespace ringmaster::planner
