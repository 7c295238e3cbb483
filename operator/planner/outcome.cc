// Phases 1 to 3: what has ended and why, whether the job has ended, and the clean-up afterwards.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/failure_policy/failure_policy.h"
#include "operator/api/exit_code.h"
#include "operator/planner/disruption.h"
#include "operator/planner/phases.h"

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

// The launcher is the container's main process. It ends with the code of a worker that failed, or
// says itself why it ends with a code of its own.
bool LauncherChoseTheCode(const PodFacts& pod) {
  return pod.last_words.starts_with("ringmaster-launcher: error: ");
}

std::string WhatEnded(const PodFacts& pod) {
  if (pod.exit_code) {
    return fmt::format("its {} {}", LauncherChoseTheCode(pod) ? "launcher" : "worker",
                       HowItEnded(*pod.exit_code));
  }
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

void Fail(JobState& state, std::string reason, std::string message) {
  if (state.outcome.ended()) return;
  state.outcome = {.failed = true, .reason = std::move(reason), .message = std::move(message)};
}

void CountFault(JobState& state, DecisionDraft& out, const std::string& what) {
  ++out.status.faults;
  state.last_fault = what;
}

void CountPod(const Snapshot& in, JobState& state, DecisionDraft& out, const PodFacts& pod) {
  api::Status& status = out.status;
  status.accounted_pods.push_back(pod.uid);
  BlameForPod(in, out, pod);
  if (pod.leaving() || pod.phase == PodPhase::kSucceeded) return;
  ++status.worker.failed;
  const FailureAction action = ActionFor(in.job.spec.failure_policy, pod.exit_code, pod.reason);
  const std::string what = fmt::format("pod {} failed: {}", pod.name, ExitText(pod));
  if (action != FailureAction::kIgnore && IsFault(pod)) CountFault(state, out, what);
  if (state.finishing) {
    const bool own =
        pod.exit_code && failure_policy::IsOwnFailure(*pod.exit_code) && !IsFromOutside(pod.reason);
    const bool agreed = in.view == nullptr || InView(in, pod.uid);
    if (own && agreed) {
      Fail(state, "WorkerFailedAtTheEnd", what + ", after all ranks had agreed to end");
    } else if (own && action == FailureAction::kFailJob) {
      Fail(state, "WorkerFailed", what + ", just before the other ranks agreed to end");
    }
    return;
  }
  out.AddEvent(true, "PodFailed", what, pod.name);
  if (action == FailureAction::kFailJob) {
    const bool ruled =
        failure_policy::RuleFor(in.job.spec.failure_policy.rules, pod.exit_code, pod.reason);
    Fail(state, "WorkerFailed",
         what + (ruled ? "; a rule of failurePolicy says FailJob"
                       : "; no rule of failurePolicy names that exit code"));
  } else {
    ++status.pods_replaced;
  }
}

void CountWorkerExits(const Snapshot& in, JobState& state, DecisionDraft& out) {
  api::Status& status = out.status;
  for (const job::WorkerExit& exit : in.exits) {
    // A worker that is not restarted ends with its pod, and is counted with the pod.
    if (exit.by_us || !exit.restarting || !NoteExit(in, out, exit)) continue;
    ++status.worker_restarts;
    BlameForExit(in, out, exit);
    const FailureAction action = ActionFor(in.job.spec.failure_policy, exit.exit_code, "");
    const std::string what =
        fmt::format("worker {} of pod {} {}", exit.slot, exit.pod_name, HowItEnded(exit.exit_code));
    if (action != FailureAction::kIgnore && IsApplicationFault(exit.exit_code)) {
      CountFault(state, out, what);
    }
    out.AddEvent(true, "WorkerRestarted", what + " and was started again in place", exit.pod_name);
  }
  out.exits_counted = in.exits.size();
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
void CountStartAgain(const Snapshot& in, JobState& state, DecisionDraft& out) {
  if (in.view == nullptr || !HasBegunAgain(in)) return;
  ++out.status.restarts_from_checkpoint;
  if (AllWereKilled(in)) CountFault(state, out, kAllKilled);
}

// Evaluates pods that ended with 0 although no sidecar reported an agreement to end.
void EvaluateEarlyExits(const Snapshot& in, JobState& state, DecisionDraft& out) {
  for (const PodFacts& pod : in.pods) {
    if (pod.phase != PodPhase::kSucceeded || pod.leaving()) continue;
    const Time patience =
        std::max(pod.ended_at.value_or(pod.created) + kFinishGrace, HeardAllBy(in));
    if (in.now < patience) {
      out.LookAgainAt(patience);
      continue;
    }
    return Fail(state, "WorkerEndedEarly",
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

// The pod has no part in the end of the training.
bool IsOutOfTheLastView(const Snapshot& in, const PodFacts& pod) {
  if (in.view != nullptr) return !InView(in, pod.uid);
  if (!HasHadView(in)) return false;
  // The record was deleted, and no sidecar that is connected is in a view. The others went on
  // without a pod that failed, and who has just come has not trained.
  if (pod.ended()) return pod.phase != PodPhase::kSucceeded;
  const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
  return sidecar != nullptr && sidecar->connected && sidecar->epoch == 0;
}

// After all ranks have agreed to end no view follows, and so nothing needs a proof of death: a pod
// whose time to leave is over, on a node of which nobody hears, is not waited for.
bool IsLostAtTheEnd(const Snapshot& in, DecisionDraft& out, const PodFacts& pod) {
  if (!pod.deleting || !pod.delete_at) return false;
  const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
  if (sidecar != nullptr && sidecar->connected) return false;
  const NodeFacts* node = FindNode(in, pod.node);
  if (node != nullptr && !IsUnreachable(*node)) return false;
  if (in.now >= *pod.delete_at) return true;
  out.LookAgainAt(*pod.delete_at);
  return false;
}

// Nobody trains any more, and nobody could say that all ranks had agreed to end: the last view may
// be newer than the one that is known here. A pod that was not told to leave ends with 0 when its
// ranks have done all.
bool AllEndedWithZero(const Snapshot& in) {
  const auto stays = [](const PodFacts& pod) { return !pod.leaving(); };
  const auto succeeded = [](const PodFacts& pod) { return pod.phase == PodPhase::kSucceeded; };
  return std::all_of(in.pods.begin(), in.pods.end(), succeeded) &&
         std::any_of(in.pods.begin(), in.pods.end(), stays);
}

// The pods that decide about success are those of the last view.
void EvaluateSuccess(const Snapshot& in, JobState& state, DecisionDraft& out) {
  std::size_t succeeded = 0, killed = 0, others = 0;
  for (const PodFacts& pod : in.pods) {
    if (IsOutOfTheLastView(in, pod)) {
      others += IsAboutToFail(in, out, pod) ? 1 : 0;
      continue;
    }
    // A leaving pod may end with 0 too, which says nothing about the job unless all ranks had
    // agreed to end. If there never was a view, no pod took over from one that failed.
    if (pod.phase == PodPhase::kSucceeded && (state.finishing || !pod.leaving())) {
      ++succeeded;
    } else if (state.finishing && !pod.ended() && IsLostAtTheEnd(in, out, pod)) {
      ++killed;
    } else if (!pod.ended() || (in.view == nullptr && !pod.leaving())) {
      ++others;
    } else if (state.finishing) {
      ++killed;  // after the training: a failure of its own would have failed the job
    }
  }
  if (others > 0) return;
  if (succeeded + killed == 0 && AllEndedWithZero(in)) succeeded = in.pods.size();
  if (succeeded + killed == 0) return;
  state.outcome = {
      .succeeded = true, .reason = "AllRanksDone", .message = HowAllEnded(succeeded, killed)};
}

int Limit(const Snapshot& in) { return in.job.spec.run_policy.backoff_limit; }

void EvaluateFaults(const Snapshot& in, JobState& state, const DecisionDraft& out) {
  if (out.status.faults <= Limit(in)) return;
  Fail(state, "BackoffLimitExceeded",
       fmt::format("the application failed {}; backoffLimit is {}{}{}",
                   Plural(static_cast<std::size_t>(out.status.faults), "time"), Limit(in),
                   state.last_fault.empty() ? "" : "; the last time: ", state.last_fault));
}

bool AMemberTrainsOn(const Snapshot& in) {
  return std::any_of(in.pods.begin(), in.pods.end(), [&](const PodFacts& pod) {
    return InView(in, pod.uid) && !pod.ended() && !pod.leaving();
  });
}

// Whom the status lists, before it knows of this view, and the view does not.
bool SomebodyLeft(const Snapshot& in) {
  const api::Status& known = in.job.status;
  if (in.view->ranks.size() < static_cast<std::size_t>(std::max(0, known.world_size))) return true;
  return std::any_of(known.ring.begin(), known.ring.end(), [&](const api::RingEntry& entry) {
    return std::none_of(in.view->pods.begin(), in.view->pods.end(),
                        [&](const membership::Pod& pod) { return pod.name == entry.pod; });
  });
}

// A view that nobody left is held because minReplicas was raised: the pods that it lacks are on
// their way. One without a member that lives is what an earlier run of the job has left behind.
bool FellBelowMin(const Snapshot& in) {
  if (in.view == nullptr || in.view->train || !AMemberTrainsOn(in)) return false;
  if (GoesOnWith(in) > 0) return false;
  return !in.view->planned || SomebodyLeft(in);
}

void EvaluateDeadlines(const Snapshot& in, JobState& state, DecisionDraft& out) {
  const api::Spec& spec = in.job.spec;
  const auto started = api::ParseTime(out.status.running_since);
  if (spec.run_policy.active_deadline_seconds && started) {
    const Time end = *started + std::chrono::seconds(*spec.run_policy.active_deadline_seconds);
    if (in.now >= end) {
      return Fail(state, "DeadlineExceeded",
                  fmt::format("it ran longer than activeDeadlineSeconds ({} s)",
                              *spec.run_policy.active_deadline_seconds));
    }
    out.LookAgainAt(end);
  }
  EvaluateFaults(in, state, out);
  if (spec.elastic_policy.on_below_min == api::OnBelowMin::kFailJob && !state.finishing &&
      FellBelowMin(in)) {
    Fail(state, "BelowMinReplicas",
         fmt::format("{} left, {} is {}, and onBelowMin says FailJob",
                     Plural(in.view->pods.size(), "pod"), LeastName(in), LeastTogether(in)));
  }
}

// Since when the job begins anew, as no member of its view is left. A pod that has come before may
// have waited for longer, with others that trained.
Time BeginsAnewSince(const Snapshot& in) {
  if (in.view == nullptr) return Time::min();
  const api::Condition* running = in.job.status.Find("Running");
  if (running == nullptr || running->status) return in.now;
  return api::ParseTime(running->last_transition_time).value_or(in.now);
}

void EvaluateInit(const Snapshot& in, JobState& state, const PodSets& pods, DecisionDraft& out) {
  // A worker that joins others is waited for without an end: they train. After a view whose members
  // have all gone the job begins anew.
  if (in.view != nullptr ? AMemberTrainsOn(in) : HasHadView(in)) return;
  const auto timeout = std::chrono::seconds(in.job.spec.init_timeout_seconds);
  const Time anew = BeginsAnewSince(in);
  std::vector<std::string> missing;
  for (const PodFacts* pod : pods.active) {
    const SidecarFacts* sidecar = FindSidecar(in, pod->uid);
    if (pods.away.count(pod->uid) != 0) continue;  // another one is on its way
    if (!pod->running_since || (sidecar != nullptr && sidecar->ready)) continue;
    const Time end = std::max(std::max(*pod->running_since, anew) + timeout, HeardAllBy(in));
    if (in.now < end) {
      out.LookAgainAt(end);
    } else {
      missing.push_back(fmt::format("{} ({})", pod->name, WhatIsMissing(sidecar)));
    }
  }
  if (!missing.empty()) {
    Fail(state, "InitTimeout",
         fmt::format("after initTimeoutSeconds ({} s) these have not come to init(): {}",
                     timeout.count(), Names(missing)));
  }
}

// Ranks may have agreed to end before a suspension, and their pods may still exist. The resumed job
// begins anew, so that was not its end.
bool EndedAnEarlierRun(const Snapshot& in, const JobState& state, const SidecarFacts& sidecar) {
  if (state.suspended) return true;
  const api::Condition* resumed = in.job.status.Find("Suspended");
  if (resumed == nullptr) return false;
  const PodFacts* pod = FindPod(in, sidecar.pod_uid);
  if (pod == nullptr) return true;
  if (!pod->deleting || (in.job.status.Is("Running") && InView(in, pod->uid))) return false;
  const auto since = api::ParseTime(resumed->last_transition_time);
  return !since || pod->created < *since;
}

void CountFinished(const Snapshot& in, JobState& state, DecisionDraft& out) {
  std::uint64_t& finished = out.status.finished_epoch;
  if (state.suspended) finished = 0;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!EndedAnEarlierRun(in, state, sidecar))
      finished = std::max(finished, sidecar.finished_epoch);
  }
  state.finishing = finished != 0;
}

// `all`: also pods that have ended.
void DeletePods(const Snapshot& in, DecisionDraft& out, bool all, const std::string& reason) {
  for (const PodFacts& pod : in.pods) {
    const bool runs = !pod.ended() || pod.lingers;
    if (!pod.deleting && (runs || all)) out.deletes.push_back({pod.name, pod.uid, reason});
  }
}

void DeleteJobInTime(const Snapshot& in, DecisionDraft& out) {
  const auto ttl = in.job.spec.run_policy.ttl_seconds_after_finished;
  const auto completed = api::ParseTime(in.job.status.completion_time);
  if (!ttl || !completed) return;
  const Time end = *completed + std::chrono::seconds(*ttl);
  out.delete_job = in.now >= end;
  if (!out.delete_job) out.LookAgainAt(end);
}

}  // namespace

bool IsAboutToFail(const Snapshot& in, DecisionDraft& out, const PodFacts& pod) {
  if (pod.ended() || pod.leaving()) return false;
  const SidecarFacts* sidecar = FindSidecar(in, pod.uid);
  if (sidecar == nullptr || !sidecar->last_exit) return false;
  const bool fails =
      failure_policy::IsOwnFailure(*sidecar->last_exit) &&
      ActionFor(in.job.spec.failure_policy, *sidecar->last_exit, "") == FailureAction::kFailJob;
  const Time patience = in.view_since + kFinishGrace;
  if (!fails || in.now >= patience) return false;
  out.LookAgainAt(patience);
  return true;
}

// Of a pod whose workers are started again and again, which looks as if it were starting.
std::string HowTheLastEnded(const SidecarFacts& sidecar) {
  constexpr int kKilled = 128 + 9;
  if (!sidecar.last_exit) return "";
  return fmt::format("; the last worker there {}{}", HowItEnded(*sidecar.last_exit),
                     *sidecar.last_exit == kKilled ? " (out of memory?)" : "");
}

std::string WhatIsMissing(const SidecarFacts* sidecar) {
  if (sidecar == nullptr || !sidecar->connected) return "its sidecar has not registered";
  if (sidecar->missing_slots.empty()) return "no worker has connected";
  const std::string last = HowTheLastEnded(*sidecar);
  if (sidecar->missing_slots.size() == 1)
    return fmt::format("slot {} has not called init(){}", sidecar->missing_slots[0], last);
  return fmt::format("slots {} have not called init(){}", fmt::join(sidecar->missing_slots, ", "),
                     last);
}

void CountEnds(const Snapshot& in, JobState& state, DecisionDraft& out) {
  api::Status& status = out.status;
  CountFinished(in, state, out);
  // Keeps only pods that still exist, so that the list stays short.
  std::erase_if(status.accounted_pods,
                [&](const std::string& uid) { return FindPod(in, uid) == nullptr; });
  ForgetExits(in, out);
  if (JobHasEnded(in) || state.suspended) {
    out.exits_counted = in.exits.size();
    return;
  }
  for (const PodFacts& pod : in.pods) {
    // Pods that are counted get deleted, which makes room in the list for the next ones. While all
    // ranks end no pod is replaced, so the list can't outgrow the number of the job's pods.
    if (status.accounted_pods.size() >= kMostUids && !state.finishing) break;
    if (pod.ended() && !IsAccounted(in, pod.uid)) CountPod(in, state, out, pod);
  }
  CountWorkerExits(in, state, out);
  CountStartAgain(in, state, out);
}

bool IsIgnored(const Snapshot& in, const PodFacts& pod) {
  return pod.phase == PodPhase::kFailed &&
         ActionFor(in.job.spec.failure_policy, pod.exit_code, pod.reason) == FailureAction::kIgnore;
}

void EvaluateOutcome(const Snapshot& in, JobState& state, const PodSets& pods, DecisionDraft& out) {
  for (const char* type : {"Succeeded", "Failed"}) {
    const api::Condition* condition = in.job.status.Find(type);
    if (condition == nullptr || !condition->status) continue;
    const bool succeeded = std::string(type) == "Succeeded";
    state.outcome = {succeeded, !succeeded, condition->reason, condition->message};
    return;
  }
  if (state.suspended) return;
  if (!state.outcome.ended()) EvaluateSuccess(in, state, out);
  if (state.outcome.ended()) return;
  // The first outcome found is the one that counts.
  EvaluateDeadlines(in, state, out);
  if (!state.finishing) EvaluateEarlyExits(in, state, out);
  EvaluateInit(in, state, pods, out);
}

void EvaluateStartAgain(const Snapshot& in, JobState& state, DecisionDraft& out) {
  if (!AllWereKilled(in) || out.status.faults < Limit(in)) return;
  CountFault(state, out, kAllKilled);
  EvaluateFaults(in, state, out);
}

void CleanUp(const Snapshot& in, const JobState& state, DecisionDraft& out) {
  const bool ended = state.outcome.ended();
  if (!ended && !state.suspended) return;
  // The kubelets tell each pod for itself: one that knew of its own end alone would leave a step
  // before the others.
  if (!ended && in.view != nullptr && !MembersKnowThatAllLeave(in, state, out)) return;
  // How the job ended is to be seen on its pods until it is written: the write may fail, and a pod
  // that is being deleted is no failed one at the next look.
  if (ended && !JobHasEnded(in)) return out.LookAgainAt(in.now);
  const api::CleanPodPolicy policy = in.job.spec.run_policy.clean_pod_policy;
  const bool all = state.suspended || policy == api::CleanPodPolicy::kAll;
  if (!ended || policy != api::CleanPodPolicy::kNone) {
    DeletePods(in, out, all, ended ? "JobEnded" : state.gives_all ? kPreempted : "Suspended");
  }
  if (ended) DeleteJobInTime(in, out);
}

}  // namespace ringmaster::planner
