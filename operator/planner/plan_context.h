// What the phases of one Plan() call hand on to each other. Private to the planner.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/planner/decision.h"
#include "operator/planner/disruption.h"
#include "operator/planner/planner.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

struct Outcome {
  bool succeeded = false;
  bool failed = false;
  std::string reason;
  std::string message;
  bool ended() const { return succeeded || failed; }
};

struct PlanContext {
  const Snapshot& in;
  Decision out;
  Outcome outcome;
  bool suspended = false;  // no pod of it is to be there now
  bool queued = false;     // its queue has not admitted it
  bool gives_all = false;  // it makes way for a more important job
  bool finishing = false;  // all ranks agreed to end: nothing is rebuilt
  std::string last_fault;  // of the application, of those that are counted just now
  int wanted = 0;
  // What keeps the job from training that only a recovery from quorum loss or people can mend;
  // empty: nothing.
  std::string stall_reason;
  std::string stall_message;
  std::vector<const PodFacts*> active;    // run or are coming; not marked to leave
  std::map<std::string, Warning> warned;  // of `active`, by uid: on a node that is to go
  std::set<std::string> away;  // of `active`: nobody hears from the node, and the ring does without
  std::vector<const PodFacts*> leaving;  // drained or deleted, not ended

  std::string preempted;     // which pods have just been asked to leave for whom; empty: none
  std::string gated_why;     // why gated pods stay so; empty: none does
  std::string leavers;       // who makes room for it, for people; empty: nobody
  bool no_capacity = false;  // the nodes have no capacity left, that is
  std::string for_nodes;     // which pods stand Pending for an autoscaler's nodes; empty: none

  void LookAgainAt(Time time);
  // Of `active`: will be there tomorrow too, for all we know.
  bool Stays(const PodFacts& pod) const;
  void AddEvent(bool warning, std::string reason, std::string message, std::string pod = "");
};

// There has been a view. The lineage alone is written before the first one is.
inline bool HasHadView(const Snapshot& in) {
  const api::Status& known = in.job.status;
  return in.view != nullptr || known.world_size > 0 || membership::EpochNumber(known.epoch) > 0;
}
// Not before this does it mean anything that a sidecar has not said something.
inline Time HeardAllBy(const Snapshot& in) { return in.taken_over + kSidecarsReturn; }
const SidecarFacts* FindSidecar(const Snapshot& in, const std::string& pod_uid);
const PodFacts* FindPod(const Snapshot& in, const std::string& pod_uid);
const NodeFacts* FindNode(const Snapshot& in, const std::string& name);  // null: not known
bool InView(const Snapshot& in, const std::string& pod_uid);
// The pod can take no more part in anything: ended, or its object is gone.
bool IsGone(const Snapshot& in, const std::string& pod_uid);
// Its death is proven, now or (for a member of the view) in the status.
bool IsProvenDead(const Snapshot& in, const std::string& pod_uid);
// A worker of a pod outside of the view has failed the job, its sidecar says; the pod has yet to
// end with that. The other ranks may agree to end meanwhile.
bool IsAboutToFail(PlanContext& plan, const PodFacts& pod);
bool IsKeptProof(const Snapshot& in, const std::string& pod_uid);  // in the status
bool IsAccounted(const Snapshot& in, const std::string& pod_uid);
bool JobHasEnded(const Snapshot& in);  // and its status says so
bool Contains(const std::vector<std::string>& texts, const std::string& text);
// Why a pod that runs is not ready, for people.
std::string WhatIsMissing(const SidecarFacts* sidecar);
std::string Plural(std::size_t n, const std::string& noun);
// "a, b, c, d and 996 more": a thousand pods wait for the same thing as one.
std::string Names(const std::vector<std::string>& names);
std::string Listed(const std::vector<std::string>& texts, const char* between);

// What a status lists: at most so many, 40 bytes each. etcd takes an object of 1.5 MiB.
inline constexpr std::size_t kMostUids = 1000;

// Conditions that are no news for an event: it may pass, or has been said as it began.
inline constexpr char kStalled[] = "Stalled";
inline constexpr char kStartingAgain[] = "StartingAgain";
inline constexpr char kQuorumLost[] = "QuorumLost";
inline constexpr char kDrainHeld[] = "DrainHeld";
inline constexpr char kNoStepEnds[] = "NoStepEnds";

void ObserveNodes(PlanContext& plan);
// Which announced ends the new pod is made in spite of, and what follows for where it may go.
void RecordAnnouncedEnds(const PlanContext& plan, PodCreate& create);
// The node that a pod without one was kept off, and that stays after all; empty: none.
std::string NodeToReturnTo(const PlanContext& plan, const PodFacts& pod);
void CountEnds(PlanContext& plan);
void EvaluateOutcome(PlanContext& plan);
// The job is to start again from its checkpoint: that may be once too often. It is counted when the
// record has the view.
void EvaluateStartAgain(PlanContext& plan);
void CleanUp(PlanContext& plan);
void Size(PlanContext& plan);
// The pod leaves by plan.
void Drain(PlanContext& plan, const PodFacts* pod, const std::string& reason);
// Preemption: pods leave for more important jobs, and which ones could.
void YieldToOthers(PlanContext& plan);
void OfferPods(PlanContext& plan);
// All pods of the job leave for a more important one: they are asked for, or some are still there.
bool GivesAll(PlanContext& plan);
void OfferAll(PlanContext& plan);
// Of a job whose pods have all been told to go: some still end.
bool PodsStillEnd(PlanContext& plan);
void SetPreempted(PlanContext& plan);
// It has given all that it had, and has not enough to start again.
bool WaitsSincePreempted(const api::Status& status);
std::string WhoLeaves(const Snapshot& in);  // for this job, for people
// Whether the job's queue lets it have pods, and how many.
void ObserveQueue(PlanContext& plan);
// What its queue lacks, people have to mend.
bool IsQueueTrouble(const PlanContext& plan);
// In which words its queue keeps it from having pods.
void SetQueued(PlanContext& plan);
// "3 of 4 pods are admitted by ...", where that is fewer than the job wants, or why nobody can say;
// else empty.
std::string FewerByQueue(const PlanContext& plan);
// True: the pods that were let start go, as they don't all find a node; others are made at the next
// look.
bool GiveBack(PlanContext& plan);
// With fewer pods than this the job is not let start: minReplicas, or the allowed size above it.
int LeastTogether(const PlanContext& plan);
void Admit(PlanContext& plan);
// As many of the gated pods as the job needs to start stand Pending from now on, if it may call for
// nodes.
void CallForNodes(PlanContext& plan, const std::vector<const PodFacts*>& gated, int least);
// Which pods do already. `has_members`: others of the job have its state.
void ObserveNodeCalls(PlanContext& plan, bool has_members);
// Which new pods autoscalers are to leave where they are, and which they need not any more.
void SetShields(PlanContext& plan, bool has_members);
void MakeView(PlanContext& plan);
void RecoverFromQuorumLoss(PlanContext& plan);
// Connected pods that can begin a lineage: ready, not leaving, and where `fresh` with workers that
// have been in no view. Null: not enough of them yet.
membership::ViewPtr BootstrapOf(PlanContext& plan, std::uint64_t lineage);
void NotifySidecars(PlanContext& plan);
// All pods go: their sidecars hear of each other that they do, so that the workers leave together
// at the next step boundary instead of waiting for a view without them, which nobody is left to
// decide.
void NotifyThatAllLeave(PlanContext& plan);
void Release(PlanContext& plan);
void WriteStatus(PlanContext& plan);
void SetStarting(PlanContext& plan);
void SetCantJoin(PlanContext& plan);
// Waits for the others with a worker that has asked to be let in and can't be given their state.
bool LacksState(const Snapshot& in, const SidecarFacts& sidecar);
// That pods wait to leave or to join, and no step ends.
void SetNoStepEnds(PlanContext& plan);
// Why a pod whose time to leave is over is in the ring still, for people.
std::string WhyNotLeft(const PlanContext& plan, const PodFacts& pod);
// "'grad': asked for by 2 ranks, not by rank 1 (digits-worker-1), since 2026-11-03T10:20:30Z"
std::vector<std::string> DescribeStalls(const Snapshot& in);
std::string WaitingForInit(PlanContext& plan);  // before the first view, for people
// As many pods as the job needs to start have run for longer than a worker usually takes to init().
bool EnoughHaveRun(PlanContext& plan);
// The reason of conditions of a job that has no pods for now.
std::string SuspendedReason(const PlanContext& plan);
void SetCondition(PlanContext& plan, const std::string& type, bool on, std::string reason,
                  std::string message);

// Cooldown of nodes: what is held against one, and which ones new pods avoid.
void BlameForPod(PlanContext& plan, const PodFacts& pod);
void BlameForExit(PlanContext& plan, const job::WorkerExit& exit);
void BlameForSilence(PlanContext& plan, const PodFacts& pod);
std::vector<std::string> NodesToAvoid(PlanContext& plan);

}  // namespace ringmaster::planner
