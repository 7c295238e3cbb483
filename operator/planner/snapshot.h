// The planner's input: one job at one moment. It is observed once for each reconcile and never
// changed afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/rebuild.h"
#include "common/job/registration.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view.h"
#include "operator/api/horovod_job.h"
#include "operator/api/time.h"
#include "operator/kueue/queue_state.h"
#include "operator/provisioning/request.h"
#include "operator/scheduler/gang_fit.h"
#include "operator/scheduler/pod_demand.h"

namespace ringmaster::planner {

using api::Time;

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed };

// Why a kubelet can't start a pod's containers.
struct Unstartable {
  // ImagePullFailed, ContainerCrashes, ContainerNotStarted, VolumeNotMounted; empty: no problem.
  std::string reason;
  std::string what;     // for people: the container and its image
  std::string message;  // from the kubelet
  explicit operator bool() const { return !reason.empty(); }
};

struct ContainerEnd {
  std::string name;
  int exit_code = 0;
};

struct PodFacts {
  std::string name;
  std::string uid;
  std::string version;  // of the object
  int index = 0;
  std::string node;
  PodPhase phase = PodPhase::kPending;
  bool scheduled = false;
  bool deleting = false;
  bool gated = false;           // an earlier operator has made it with our scheduling gate
  bool grouped = false;         // it is in a Kubernetes PodGroup
  bool all_terminated = false;  // the kubelet has reported every container as terminated
  // The pod can never again send, store or compute anything (docs/proof-of-death.md). Only this
  // counts as death where safety depends on it: a pod without an object, or that has `ended`, may
  // still run.
  bool proven_dead = false;
  std::string proof;  // the proof, for people; empty: none
  Time created;
  std::string made_from;         // annotation ringmaster.dev/made-from; empty: not known
  std::int64_t made_at = 0;      // annotation ringmaster.dev/made-at-generation; 0: not known
  std::string topology;          // annotation ringmaster.dev/topology
  bool calls_for_nodes = false;  // annotation ringmaster.dev/calls-for-nodes
  std::string consumes;          // the ProvisioningRequest that has booked its capacity
  // Annotations that the operator has set so that autoscalers don't move the pod.
  std::vector<std::string> shields;
  std::optional<Time> running_since;        // of the worker container
  std::optional<Time> ended_at;             // of the worker container
  std::optional<int> exit_code;             // of the worker container; 128+n for signal n
  std::optional<ContainerEnd> failed_init;  // the reason why the worker never ran
  std::string last_words;                   // last line in the log of the container that failed
  bool lingers = false;                     // the worker has ended, other containers run on
  std::string reason;        // Evicted, OOMKilled, the one of DisruptionTarget, ...; empty: none
  std::string waiting;       // why it has no node, for people: "Unschedulable: ..."
  bool preparing = false;    // a kubelet has accepted it, and none of its containers has begun
  bool rejected = false;     // its kubelet has failed it before any of its containers began
  Unstartable unstartable;   // why its containers can't start
  std::string drain_reason;  // annotation ringmaster.dev/drain
  std::optional<Time> drain_since;  // annotation ringmaster.dev/drain-since
  int grace_seconds = 30;
  std::string http;                  // annotation ringmaster.dev/http
  std::optional<Time> delete_at;     // deletionTimestamp: when its grace period ends
  bool has_finalizer = false;        // our own finalizer
  bool accepted = false;             // a kubelet has accepted it
  std::optional<Time> accepted_at;   // when a kubelet accepted it
  std::string boot;                  // annotation ringmaster.dev/boot
  std::string vouched;               // annotation ringmaster.dev/proven-dead
  std::string held_why;              // annotation ringmaster.dev/held
  std::string warned;                // annotation ringmaster.dev/warned
  std::optional<Time> warned_since;  // annotation ringmaster.dev/warned-since
  // Annotation ringmaster.dev/announced: the ends of nodes that were announced when it was created,
  // reasons by node.
  std::map<std::string, std::string> announced;

  bool ended() const {
    return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed || all_terminated ||
           proven_dead;
  }
  bool leaving() const { return deleting || !drain_reason.empty(); }
};

struct TaintFacts {
  std::string key;
  std::string effect;
  std::string value;
  friend bool operator==(const TaintFacts&, const TaintFacts&) = default;
};

struct NodeFacts {
  std::string name;
  bool ready = false;          // condition Ready is True
  bool unschedulable = false;  // cordoned
  std::string boot_id;
  std::string machine;  // machine id and system uuid: identifies the machine with this name
  std::vector<TaintFacts> taints;
  std::string place;  // its place in the topology, from the largest area to the smallest

  // Identifies the boot in which a pod runs.
  std::string BootRecord() const { return boot_id + " " + machine; }
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// A sidecar that has registered since the operator started: its registration, with the epoch of the
// newest view that it has installed since, and its reports.
struct SidecarFacts : job::Registration {
  bool connected = false;  // its stream is open
  bool ready = false;
  std::vector<std::uint32_t> missing_slots;
  std::optional<Time> ready_since;
  membership::Candidate candidate;   // from its newest readiness report
  std::uint64_t finished_epoch = 0;  // 0: not finished
  bool able = false;                 // its view can train, as far as it knows
  Time unable_since;                 // if it is not `able`; not before it registered
  // Exit code of the worker that ended last, unless that was requested.
  std::optional<int> last_exit;
  std::optional<membership::RecoveryReport> report;  // its newest report
  std::vector<job::Stall> stalls;                    // tensors that wait for ranks
  Time stalls_at;                                    // when they were reported
  std::vector<job::GpuHealth> failing_gpus;          // that its workers use
  // Since when a planned change has waited for a step to end: no worker of this pod has ended one
  // since.
  std::optional<Time> step_awaited_since;
  bool knows_that_all_leave = false;  // all pods of its view
};

// The newest view of which a sidecar has told the epoch: it is the one that it has installed.
struct ToldView {
  membership::Epoch epoch = 0;  // 0: none
  Time since;                   // when this operator first heard of it
};

class SnapshotIndex;

struct Snapshot {
  api::HorovodJob job;
  std::vector<PodFacts> pods;  // by index
  // As far as they are known: the nodes of these pods, the nodes named in announcements on these
  // pods, and all nodes whose end is announced.
  std::vector<NodeFacts> nodes;
  std::vector<std::string> disruption_taints;  // keys of taints that announce the end of a node
  std::vector<SidecarFacts> sidecars;
  std::vector<job::WorkerExit> exits;  // exits that the status doesn't count yet
  membership::ViewPtr view;  // the newest known one, from the record or a sidecar; null: none
  // Newer than `view` if its coordinator has not reported it.
  ToldView told_view;
  // When this operator first saw `view`.
  Time view_since;
  // When this operator first saw the job, if another operator has begun it; else long ago. Sidecars
  // that have not connected by now may still do so.
  Time taken_over;
  // The record's lineage; it is above that of `view` while a recovery from quorum loss is in
  // progress. 0: there is no record.
  std::uint64_t lineage = 0;
  std::vector<job::Rebuild> rebuilds;  // the newest known figures for each epoch, by epoch
  // What the job's Kueue queue allows it; absent: it is in no queue.
  std::optional<kueue::QueueState> queue;
  // How many of the pods to be created would find a node at the same time; absent: free capacity is
  // not tracked.
  std::optional<scheduler::GangFit> gang_fit;
  // How long pods may stand Pending for nodes that an autoscaler makes; absent: there is no
  // autoscaler.
  std::optional<std::chrono::seconds> nodes_within;
  // Nodes are asked for by ProvisioningRequests; absent: by pods that stand Pending, if at all.
  std::optional<provisioning::Requests> requests;
  // Pods of the job that should leave for more important jobs.
  std::vector<scheduler::PodDemand> demands;
  // The API server has refused pods of the job, and it is too early for another try.
  bool creation_waits = false;
  // A PodGroup keeps the job's pods together: the Kubernetes scheduler decides when they start, and
  // free capacity is not counted.
  bool grouped = false;
  Time now;
  // Set while the planner works on the snapshot; it only makes look-ups faster.
  mutable const SnapshotIndex* index = nullptr;
};

}  // namespace ringmaster::planner
