// Phase 6, second half: going on when no view can decide its successor any more (rule 9).
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

constexpr char kWaitingForProof[] = "WaitingForProof";
constexpr char kHelp[] = "docs/membership.md says what to do";

struct Voter {
  std::string uid;
  std::string text;  // for people
  bool connected = false;
};

bool IsConnected(const Snapshot& in, const std::string& uid) {
  const SidecarFacts* sidecar = FindSidecar(in, uid);
  return sidecar != nullptr && sidecar->connected;
}

// A worker pod's object stays until its death is proven (by the finalizer), or until it has left by
// plan.
bool CountsAsDead(const Snapshot& in, const std::string& uid) {
  return IsProvenDead(in, uid) || (FindPod(in, uid) == nullptr && !IsConnected(in, uid));
}

// The pods that may be in a view. A sidecar learns of a view only after its address was written on
// its pod.
std::vector<Voter> MustReport(const Snapshot& in) {
  std::vector<Voter> voters;
  for (const PodFacts& pod : in.pods) {
    const bool registered =
        !pod.http.empty() || FindSidecar(in, pod.uid) != nullptr || InView(in, pod.uid);
    if (IsProvenDead(in, pod.uid) || !registered) continue;
    voters.push_back({pod.uid,
                      fmt::format("{} on node {}", pod.name, pod.node.empty() ? "?" : pod.node),
                      IsConnected(in, pod.uid)});
  }
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!sidecar.connected || FindPod(in, sidecar.pod_uid) != nullptr) continue;
    // The stream outlives its sidecar if the machine is switched off.
    if (IsProvenDead(in, sidecar.pod_uid)) continue;
    voters.push_back({sidecar.pod_uid, sidecar.pod_name, true});
  }
  return voters;
}

bool MayFork(const Snapshot& in) {
  return in.job.spec.elastic_policy.on_quorum_loss == api::OnQuorumLoss::kRestartFromCheckpoint;
}

// This operator has only just taken over the job, so a sidecar that never connected is not silent
// yet.
bool MayBeOnItsWay(const Snapshot& in, const std::string& uid) {
  return in.now < HeardAllBy(in) && FindSidecar(in, uid) == nullptr;
}

bool SomebodyIsOnTheWay(const Snapshot& in) {
  const std::vector<Voter> voters = MustReport(in);
  return std::any_of(voters.begin(), voters.end(),
                     [&](const Voter& voter) { return MayBeOnItsWay(in, voter.uid); });
}

bool SomebodyTrains(const Snapshot& in) {
  return std::any_of(in.sidecars.begin(), in.sidecars.end(), [&](const SidecarFacts& sidecar) {
    return sidecar.connected && sidecar.able && !IsProvenDead(in, sidecar.pod_uid);
  });
}

// The record was deleted during a recovery: some pods have already joined its lineage and take part
// in no lower one, whatever the other pods can do.
bool WasCutShort(const Snapshot& in) {
  return in.lineage == 0 &&
         membership::EpochLineage(in.job.status.epoch) > membership::EpochLineage(in.view->epoch);
}

// If no sidecar reports that its view trains: since when none can; nullopt if no sidecar reports
// anything.
std::optional<Time> StalledSince(const Snapshot& in) {
  bool known = false, all_dead = true;
  Time since = in.view_since;
  for (const membership::Pod& pod : in.view->pods) {
    const bool dead = CountsAsDead(in, pod.uid);
    all_dead = all_dead && dead;
    known = known || dead || IsGone(in, pod.uid);
    if (dead || !IsConnected(in, pod.uid)) continue;
    known = true;
    since = std::max(since, FindSidecar(in, pod.uid)->unable_since);
  }
  if (all_dead) return Time();  // no pod can report any more, so there is no reason to wait
  return known ? std::optional(since) : std::nullopt;
}

void WaitFor(Stall& stall, const std::vector<std::string>& waits) {
  stall.reason = kWaitingForProof;
  stall.message = fmt::format(
      "too few of the view live to go on, and {} may still train somewhere: no word "
      "from there and no proof of death. Goes on when it is heard again or proven "
      "dead; {}",
      Names(waits), kHelp);
}

// What the former operator reported may still be true.
void WaitForTheSidecars(const Snapshot& in, Stall& stall, DecisionDraft& out) {
  out.LookAgainAt(HeardAllBy(in));
  const api::Condition* before = in.job.status.Find("Rebuilding");
  if (before == nullptr || !before->status || before->reason != kWaitingForProof) return;
  stall.reason = before->reason;
  stall.message = before->message;
}

void AwaitReports(const Snapshot& in, Stall& stall, const std::vector<std::string>& waits) {
  stall.reason = kQuorumLost;
  stall.message = fmt::format("asked to make way for lineage {}, and not heard yet: {}", in.lineage,
                              Names(waits));
}

// The view's members may decide the next one by themselves, and have mostly done so within
// kStallSaid.
void LeaveItToTheView(const Snapshot& in, Stall& stall, DecisionDraft& out, Time since) {
  if (in.now < since + kStallSaid) return out.LookAgainAt(since + kStallSaid);
  out.LookAgainAt(since + kStallPatience);
  stall.reason = kStalled;
  stall.message =
      fmt::format("no pod trains: the members of view {} have {} s to go on by themselves",
                  membership::EpochText(in.view->epoch), kStallPatience.count());
}

void Begin(const Snapshot& in, Stall& stall, DecisionDraft& out) {
  if (SomebodyTrains(in) && !WasCutShort(in)) return;
  if (SomebodyIsOnTheWay(in)) return WaitForTheSidecars(in, stall, out);
  const std::optional<Time> since = WasCutShort(in) ? Time() : StalledSince(in);
  if (!since) return;
  if (in.now < *since + kStallPatience) return LeaveItToTheView(in, stall, out, *since);
  std::vector<std::string> waits;
  for (const Voter& voter : MustReport(in)) {
    if (!voter.connected) waits.push_back(voter.text);
  }
  // The recovery begins only if it can end: until then the view may still go on by itself.
  if (!waits.empty() && !MayFork(in)) return WaitFor(stall, waits);
  out.recover = membership::EpochLineage(in.view->epoch) + 1;
  out.recover_event = {
      true, kQuorumLost,
      fmt::format("too few of view {} live to go on by themselves: lineage {} begins with "
                  "those that are left",
                  membership::EpochText(in.view->epoch), out.recover),
      ""};
}

// A connected sidecar is in a view that it has not reported yet. One that the job has left behind
// is of no use: those who are in it can't go on by it, and wait for another one.
bool SomebodyHasAView(const Snapshot& in) {
  return std::any_of(in.sidecars.begin(), in.sidecars.end(), [&](const SidecarFacts& sidecar) {
    return sidecar.connected && sidecar.epoch != 0 && sidecar.epoch >= in.job.status.epoch;
  });
}

// The record is gone, or was perhaps never created, and no sidecar has reported a view. Each pod
// that joins the new lineage reports whether it has one.
void BeginWithoutRecord(const Snapshot& in, Stall& stall, DecisionDraft& out) {
  stall.reason = "RecordLost";
  stall.message =
      membership::EpochNumber(in.job.status.epoch) == 0
          ? fmt::format(
                "it is not known whether the job's record, ConfigMap {}-record, was ever "
                "made, and no sidecar has told of a view: none is begun beside one in "
                "which pods may train",
                in.job.name)
          : fmt::format(
                "the job has been in epoch {}, but its record, ConfigMap {}-record, is "
                "gone, and no sidecar has told of a view: no other is begun beside that "
                "one, as pods may train in it",
                membership::EpochText(in.job.status.epoch), in.job.name);
  std::vector<std::string> waits;
  for (const Voter& voter : MustReport(in)) {
    if (!voter.connected) waits.push_back(voter.text);
  }
  if (!waits.empty() && !MayFork(in)) {
    stall.message += fmt::format(
        ". Goes on when it is known that none does; not heard and not proven dead: {}; {}",
        Names(waits), kHelp);
    return;
  }
  if (SomebodyHasAView(in)) return;
  const Time patience = std::max(in.view_since + kStallPatience, HeardAllBy(in));
  if (in.now < patience) return out.LookAgainAt(patience);
  out.recover = membership::EpochLineage(in.job.status.epoch) + 1;
  out.recover_event = {
      true, kQuorumLost,
      fmt::format("the job's record is gone and no sidecar has told of a view: lineage {} begins "
                  "with what the pods say",
                  out.recover),
      ""};
}

void Ask(const Snapshot& in, DecisionDraft& out, bool fresh_workers) {
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (!sidecar.connected) continue;
    const bool used =
        std::any_of(sidecar.candidate.workers.begin(), sidecar.candidate.workers.end(),
                    [](const membership::Worker& worker) { return worker.used; });
    out.notices.push_back({sidecar.pod_uid, RecoverNotice{in.lineage, fresh_workers && used}});
  }
}

void AddIgnoredEvent(DecisionDraft& out, const std::vector<std::string>& ignored) {
  if (ignored.empty()) return;
  out.AddEvent(
      true, "ForkPossible",
      fmt::format("onQuorumLoss is RestartFromCheckpoint: {} was not waited for. If it still "
                  "runs, the job runs twice until it is reached",
                  Names(ignored)));
}

// A step needs every member of its view, so any pod with the newest view has completed its steps,
// and the rebuild counts the lost ones. If the recovery found a newer view, its steps are unknown.
std::string GoesOnWith(const Snapshot& in, const membership::View& view) {
  std::string text =
      fmt::format("goes on with {} as epoch {}, from epoch {}", Plural(view.pods.size(), "pod"),
                  membership::EpochText(view.epoch), membership::EpochText(view.parent));
  if (view.parent >= membership::EpochOf(in.view)) {
    return text +
           ", the newest that is known; status.lastRebuild.stepsLost says how many steps "
           "are lost with the others";
  }
  std::vector<std::string> lost;
  for (const membership::Pod& pod : in.view->pods) {
    if (view.FindPod(pod.uid) < 0) lost.push_back(pod.name);
  }
  return text + fmt::format(
                    "; the steps of epoch {} are lost with {}. status.stepsLost is without "
                    "them, as no pod that lives has counted them: "
                    "ringmaster_sidecar_step of these pods may still be in Prometheus",
                    membership::EpochText(in.view->epoch), Names(lost));
}

void StartAgain(const Snapshot& in, JobState& state, const PodSets& pods, Stall& stall,
                DecisionDraft& out, const QuorumRecovery& end) {
  out.first_view = BootstrapOf(in, state, pods, out, in.lineage);
  if (out.first_view != nullptr) EvaluateStartAgain(in, state, out);
  if (state.outcome.ended()) {
    out.first_view = nullptr;
    return;
  }
  const bool begun = HasHadView(in);
  stall.reason = kStartingAgain;
  stall.message = fmt::format(
      "{}; ready pods needed for that: {}",
      begun ? "no living worker holds the job's state: it starts again from its checkpoint"
            : "the first view could not be recorded: the job bootstraps again",
      in.job.spec.elastic_policy.min_replicas);
  if (out.first_view == nullptr || !begun) return;
  out.AddEvent(
      true, "StartedAgain",
      "no living worker held the job's state: the job starts again from its checkpoint. What "
      "was done since that was written is lost; status.stepsLost is without it, "
      "status.restartsFromCheckpoint counts it");
  AddIgnoredEvent(out, end.ignored);
}

void Finish(const Snapshot& in, JobState& state, const PodSets& pods, Stall& stall,
            DecisionDraft& out) {
  const QuorumRecovery& end = EvaluateRecovery(in);
  Ask(in, out, end.nobody_holds);
  if (SomebodyIsOnTheWay(in)) return WaitForTheSidecars(in, stall, out);
  if (!end.unheard.empty()) return WaitFor(stall, end.unheard);
  if (!end.waits.empty()) return AwaitReports(in, stall, end.waits);
  if (end.view != nullptr) {
    out.first_view = end.view;
    out.AddEvent(true, "QuorumRecovered", GoesOnWith(in, *end.view));
    return AddIgnoredEvent(out, end.ignored);
  }
  StartAgain(in, state, pods, stall, out, end);
}

}  // namespace

QuorumRecovery EvaluateRecovery(const Snapshot& in) {
  QuorumRecovery out;
  std::vector<std::string> uids;
  std::vector<const membership::RecoveryReport*> reports;
  const std::vector<Voter> voters = MustReport(in);
  for (const Voter& voter : voters) {
    const SidecarFacts* sidecar = FindSidecar(in, voter.uid);
    const bool reported =
        sidecar != nullptr && sidecar->report && sidecar->report->lineage >= in.lineage;
    if (!reported && !voter.connected && MayFork(in) && !MayBeOnItsWay(in, voter.uid)) {
      out.ignored.push_back(voter.text);
      continue;
    }
    uids.push_back(voter.uid);
    if (reported) reports.push_back(&*sidecar->report);
  }
  const membership::RecoveryResult result =
      membership::RecoverFromQuorumLoss(in.lineage, uids, reports, SizesOf(in));
  for (const Voter& voter : voters) {
    if (!Contains(result.silent, voter.uid)) continue;
    out.waits.push_back(voter.text);
    if (!voter.connected) out.unheard.push_back(voter.text);
  }
  out.view = result.view;
  out.nobody_holds = result.nobody_holds;
  return out;
}

void RecoverFromQuorumLoss(const Snapshot& in, JobState& state, const PodSets& pods, Stall& stall,
                           DecisionDraft& out) {
  if (state.finishing) return;
  const bool begun = in.lineage > membership::EpochLineage(membership::EpochOf(in.view));
  if (begun) return Finish(in, state, pods, stall, out);
  if (in.view != nullptr) return Begin(in, stall, out);
  if (in.job.status.epoch != 0) BeginWithoutRecord(in, stall, out);
}

}  // namespace ringmaster::planner
