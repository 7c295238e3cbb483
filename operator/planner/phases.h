// The phases of Plan() and what they ask each other. Each names the state that it reads (const) and
// the state that it changes: what was observed, what the job as a whole is, its pods, why it waits
// or is stalled, and the decision. Private to the planner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "operator/planner/decision_draft.h"
#include "operator/planner/job_state.h"
#include "operator/planner/pod_sets.h"
#include "operator/planner/questions.h"
#include "operator/planner/snapshot.h"
#include "operator/planner/snapshot_queries.h"
#include "operator/planner/texts.h"
#include "operator/planner/timings.h"
#include "operator/planner/wait_reasons.h"

namespace ringmaster::planner {

// What a status lists: at most so many, 40 bytes each. etcd takes an object of 1.5 MiB.
inline constexpr std::size_t kMostUids = 1000;

// Conditions that are no news for an event: it may pass, or has been said as it began.
inline constexpr char kStalled[] = "Stalled";
inline constexpr char kStartingAgain[] = "StartingAgain";
inline constexpr char kQuorumLost[] = "QuorumLost";
inline constexpr char kPreempted[] = "Preempted";
inline constexpr char kJobLeaves[] = "JobLeaves";  // of kPreempted: all pods of the job leave
inline constexpr char kDrainHeld[] = "DrainHeld";
inline constexpr char kNoStepEnds[] = "NoStepEnds";

// A worker of a pod outside of the view has failed the job, its sidecar says; the pod has yet to
// end with that. The other ranks may agree to end meanwhile.
bool IsAboutToFail(const Snapshot& in, DecisionDraft& out, const PodFacts& pod);
// Why a pod that runs is not ready, for people.
std::string WhatIsMissing(const SidecarFacts* sidecar);
void ObserveNodes(const Snapshot& in, const JobState& state, PodSets& pods, DecisionDraft& out);
// True: a GPU of the pod fails, so it leaves.
bool ObserveGpus(const Snapshot& in, PodSets& pods, DecisionDraft& out, const PodFacts& pod);
// Which announced ends the new pod is made in spite of, and what follows for where it may go.
void RecordAnnouncedEnds(const Snapshot& in, PodCreate& create);
// The node that a pod without one was kept off, and that stays after all; empty: none.
std::string NodeToReturnTo(const Snapshot& in, const PodFacts& pod);
void CountEnds(const Snapshot& in, JobState& state, DecisionDraft& out);
// False: the status counts this exit already, or may do so. True: the caller counts it, and the
// status notes that.
bool NoteExit(const Snapshot& in, DecisionDraft& out, const job::WorkerExit& exit);
// Forgets the exits in pods that are gone.
void ForgetExits(const Snapshot& in, DecisionDraft& out);
// A rule of failurePolicy ignores the end of this pod.
bool IsIgnored(const Snapshot& in, const PodFacts& pod);
void EvaluateOutcome(const Snapshot& in, JobState& state, const PodSets& pods, DecisionDraft& out);
// The job is to start again from its checkpoint: that may be once too often. It is counted when the
// record has the view.
void EvaluateStartAgain(const Snapshot& in, JobState& state, DecisionDraft& out);
void CleanUp(const Snapshot& in, const JobState& state, DecisionDraft& out);
void Size(const Snapshot& in, const JobState& state, PodSets& pods, WaitReasons& why,
          DecisionDraft& out);
// The pod leaves by plan.
void Drain(PodSets& pods, DecisionDraft& out, const PodFacts* pod, const std::string& reason);
// Preemption: pods leave for more important jobs, and which ones could.
void YieldToOthers(const Snapshot& in, PodSets& pods, WaitReasons& why, DecisionDraft& out);
void OfferPods(const Snapshot& in, const PodSets& pods, DecisionDraft& out);
// All pods of the job leave for a more important one: they are asked for, or some are still there.
bool GivesAll(const Snapshot& in, DecisionDraft& out);
void OfferAll(const Snapshot& in, DecisionDraft& out);
// The status says that all pods leave, suspended or for another job.
bool IsWrittenThatAllLeave(const Snapshot& in, const JobState& state);
// That is written, and the sidecars of the newest view's members have said that they know it, or
// have had their time.
bool MembersKnowThatAllLeave(const Snapshot& in, const JobState& state, DecisionDraft& out);
// The template or the collectives were changed, so the job was suspended meanwhile, and pods of
// before run as if it had not been: all leave as for a suspension.
bool IsOutdated(const Snapshot& in);
// Of a job whose pods have all been told to go: some still end.
bool PodsStillEnd(const Snapshot& in, DecisionDraft& out);
void SetPreempted(const Snapshot& in, const JobState& state, const PodSets& pods,
                  const WaitReasons& why, DecisionDraft& out);
// It has given all that it had, and has not enough to start again.
bool WaitsSincePreempted(const api::Status& status);
std::string WhoLeaves(const Snapshot& in);  // for this job, for people
// Whether the job's queue lets it have pods, and how many.
void ObserveQueue(const Snapshot& in, JobState& state, DecisionDraft& out);
// What its queue lacks, people have to mend.
bool IsQueueTrouble(const Snapshot& in, const JobState& state);
// In which words its queue keeps it from having pods.
void SetQueued(const Snapshot& in, const JobState& state, DecisionDraft& out);
// "3 of 4 pods are admitted by ...", where that is fewer than the job wants, or why nobody can say;
// else empty.
std::string FewerByQueue(const Snapshot& in);
// True: the pods that were let start go, as they don't all find a node; others are made at the next
// look.
bool GiveBack(const Snapshot& in, const JobState& state, PodSets& pods, DecisionDraft& out);
// With fewer pods than this the job is not let start: minReplicas, or the allowed size above it.
int LeastTogether(const Snapshot& in);
// The name of the setting that says so.
const char* LeastName(const Snapshot& in);
void Admit(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out);
// Returns how many pods are created to stand Pending, if the job may call for nodes: as many as it
// needs to start.
int CallForNodes(const Snapshot& in, WaitReasons& why, DecisionDraft& out, int least);
// Which pods do already. `has_members`: others of the job have its state.
void ObserveNodeCalls(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                      bool has_members);
// A ProvisioningRequest for as many pods as the job needs to start is made, read, or made anew.
// Returns how many pods are created because capacity is booked for them.
int RequestNodes(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                 int least);
// Whether an existing request is still open; pods that rely on one that is not are taken off it.
void ObserveRequest(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                    bool has_members);
// Null: no capacity is booked for pods that may start now.
std::shared_ptr<const provisioning::Booking> BookingOf(const Snapshot& in, const PodSets& pods);
// Requests that are of no use any more go. `waits`: the job may have one.
void DropRequests(const Snapshot& in, const PodSets& pods, DecisionDraft& out, bool waits);
// Which new pods autoscalers are to leave where they are, and which they need not any more.
void SetShields(const Snapshot& in, const PodSets& pods, DecisionDraft& out, bool has_members);
void MakeView(const Snapshot& in, const JobState& state, const PodSets& pods, DecisionDraft& out);
void RecoverFromQuorumLoss(const Snapshot& in, JobState& state, const PodSets& pods, Stall& stall,
                           DecisionDraft& out);
// Connected pods that can begin a lineage: ready, not leaving, and where `fresh` with workers that
// have been in no view. Null: not enough of them yet.
membership::ViewPtr BootstrapOf(const Snapshot& in, const JobState& state, const PodSets& pods,
                                DecisionDraft& out, std::uint64_t lineage);
// In how many pods the job may train.
membership::Sizes SizesOf(const Snapshot& in);
// The view is held because its number of pods isn't allowed: so many of them are about to go on; 0:
// that isn't so.
std::size_t GoesOnWith(const Snapshot& in);
void NotifySidecars(const Snapshot& in, const JobState& state, const PodSets& pods,
                    DecisionDraft& out);
// Of a view its coordinator alone reports more than the epoch. Where it can't, another sidecar is
// asked.
void AskForView(const Snapshot& in, DecisionDraft& out);
// All pods go: their sidecars hear of each other that they do, so that the workers leave together
// at the next step boundary instead of waiting for a view without them, which nobody is left to
// decide.
void NotifyThatAllLeave(const Snapshot& in, const JobState& state, DecisionDraft& out);
void Release(const Snapshot& in, const JobState& state, DecisionDraft& out);
void WriteStatus(const Snapshot& in, const JobState& state, const PodSets& pods,
                 const WaitReasons& why, const Stall& stall, DecisionDraft& out);
void SetStarting(const Snapshot& in, const JobState& state, const PodSets& pods,
                 const WaitReasons& why, DecisionDraft& out);
void SetCantJoin(const Snapshot& in, const JobState& state, DecisionDraft& out);
// Waits for the others with a worker that has asked to be let in and can't be given their state.
bool LacksState(const Snapshot& in, const SidecarFacts& sidecar);
// That pods wait to leave or to join, and no step ends.
void SetNoStepEnds(const Snapshot& in, const JobState& state, const PodSets& pods,
                   DecisionDraft& out);
// Why a pod whose time to leave is over is in the ring still, for people.
std::string WhyNotLeft(const Snapshot& in, const PodFacts& pod);
// "'grad': asked for by ranks 0, 2, not by rank 1 (digits-worker-1), since 2026-11-03T10:20:30Z"
std::vector<std::string> DescribeStalls(const Snapshot& in);
std::string WaitingForInit(const Snapshot& in, const JobState& state, const PodSets& pods,
                           DecisionDraft& out);  // before the first view, for people
// As many pods as the job needs to start have run for longer than a worker usually takes to init().
bool EnoughHaveRun(const Snapshot& in, const PodSets& pods, DecisionDraft& out);
// The reason of conditions of a job that has no pods for now.
std::string SuspendedReason(const Snapshot& in, const JobState& state);
void SetCondition(const Snapshot& in, DecisionDraft& out, const std::string& type, bool on,
                  std::string reason, std::string message);

// Cooldown of nodes: what is held against one, and which ones new pods avoid.
void BlameForPod(const Snapshot& in, DecisionDraft& out, const PodFacts& pod);
void BlameForExit(const Snapshot& in, DecisionDraft& out, const job::WorkerExit& exit);
void BlameForGpu(const Snapshot& in, DecisionDraft& out, const PodFacts& pod);
void BlameForSilence(const Snapshot& in, DecisionDraft& out, const PodFacts& pod);
std::vector<std::string> NodesToAvoid(const Snapshot& in, DecisionDraft& out);

}  // namespace ringmaster::planner
