// What the planner looks at: one job as it was at one moment. Observed once for each reconcile,
// never changed after.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/rebuild.h"
#include "common/job/registration.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view.h"
#include "operator/api/horovod_job.h"
#include "operator/api/time.h"
#include "operator/kueue/standing.h"
#include "operator/scheduler/admission.h"

namespace ringmaster::planner {

using api::Time;

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed };

// Why a kubelet can't start a pod's containers.
struct Unstartable {
  // ImagePullFailed, ContainerCrashes, ContainerNotStarted, VolumeNotMounted; empty: nothing.
  std::string reason;
  std::string what;     // for people: which container, which image
  std::string message;  // the kubelet's
  explicit operator bool() const { return !reason.empty(); }
};

struct ContainerEnd {
  std::string name;
  int exit_code = 0;
};

struct PodFacts {
  std::string name;
  std::string uid;
  int index = 0;
  std::string node;
  PodPhase phase = PodPhase::kPending;
  bool scheduled = false;
  bool deleting = false;
  bool gated = false;           // our scheduling gate is on it
  bool grouped = false;         // it is in a PodGroup of Kubernetes
  bool all_terminated = false;  // every container, as the kubelet wrote it
  // It can never again say, store or compute anything (docs/proof-of-death.md). Nothing else counts
  // as death where safety depends on it: an object that is gone or `ended` may still run somewhere.
  bool proven_dead = false;
  std::string proof;  // which proof, for people; empty: none
  Time created;
  std::optional<Time> admitted_at;  // annotation ringmaster.dev/admitted: when its gate was lifted
  std::string topology;             // annotation ringmaster.dev/topology
  bool calls_for_nodes = false;     // annotation ringmaster.dev/calls-for-nodes
  // Annotations of autoscalers that the operator has put on it, so that they leave it where it is.
  std::vector<std::string> shields;
  std::optional<Time> running_since;        // the worker container's
  std::optional<Time> ended_at;             // the worker container's
  std::optional<int> exit_code;             // the worker container's; 128+n for signal n
  std::optional<ContainerEnd> failed_init;  // because of which the worker never ran
  std::string last_words;                   // in the log of the container that failed
  bool lingers = false;                     // the worker has ended, containers beside it run on
  std::string reason;               // Evicted, OOMKilled, DisruptionTarget's, ...; empty: none
  std::string waiting;              // for a node, for people: "Unschedulable: ..."
  bool preparing = false;           // a kubelet has it, and no container of it has begun
  Unstartable unstartable;          // why its containers can't start
  std::string drain_reason;         // annotation ringmaster.dev/drain
  std::optional<Time> drain_since;  // annotation ringmaster.dev/drain-since
  int grace_seconds = 30;
  std::string http;                  // annotation ringmaster.dev/http
  std::optional<Time> delete_at;     // deletionTimestamp: when its grace period is over
  bool has_finalizer = false;        // ours
  bool accepted = false;             // a kubelet has taken it up
  std::optional<Time> accepted_at;   // when
  std::string boot;                  // annotation ringmaster.dev/boot
  std::string vouched;               // annotation ringmaster.dev/proven-dead
  std::string held_why;              // annotation ringmaster.dev/held
  std::string warned;                // annotation ringmaster.dev/warned
  std::optional<Time> warned_since;  // annotation ringmaster.dev/warned-since
  // Annotation ringmaster.dev/announced: of which nodes an end was announced when it was made, and
  // which.
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
  std::string machine;  // machine id and system uuid: which machine has this name
  std::vector<TaintFacts> taints;
  std::string place;  // where it is, from the largest part of the topology to the smallest

  // What a pod remembers of the boot that it runs in.
  std::string BootRecord() const { return boot_id + " " + machine; }
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// A sidecar that has registered since the operator started: its registration, with the epoch of the
// newest view that it has installed since, and what it has reported.
struct SidecarFacts : job::Registration {
  bool connected = false;  // its stream stands
  bool ready = false;
  std::vector<std::uint32_t> missing_slots;
  std::optional<Time> ready_since;
  membership::Candidate candidate;   // of the newest Readiness
  std::uint64_t finished_epoch = 0;  // 0: not finished
  bool able = false;                 // in a view that can train, as far as it knows
  Time unable_since;                 // where it is not `able`; at the earliest when it registered
  std::optional<int> last_exit;  // code of the worker that ended last, if that was not asked for
  std::optional<membership::RecoveryReport> report;  // its newest
  std::vector<job::Stall> stalls;                    // tensors that wait for ranks
  Time stalls_at;                                    // when they were told
  // A planned change waits for the end of a step there: no worker of it has ended one since.
  std::optional<Time> step_awaited_since;
};

class SnapshotIndex;

struct Snapshot {
  api::HorovodJob job;
  std::vector<PodFacts> pods;  // by index
  // As far as they are known: of these pods, that these pods were told of, and all of which an end
  // is announced.
  std::vector<NodeFacts> nodes;
  std::vector<std::string> disruption_taints;  // keys that announce the end of a node
  std::vector<SidecarFacts> sidecars;
  std::vector<job::WorkerExit> exits;  // those that are not in the status yet
  membership::ViewPtr view;  // the newest known: of the record or reported by a sidecar; null: none
  // When this operator first saw `view`.
  Time view_since;
  // When it first looked at the job, if another one has begun it; else long ago. Sidecars that it
  // has not heard by then may be on their way to it.
  Time taken_over;
  // Of the record: above the lineage of `view` while a recovery from quorum loss is under way. 0:
  // no record.
  std::uint64_t lineage = 0;
  std::vector<job::Rebuild> rebuilds;  // newest known figures for each epoch, by epoch
  // Where the job stands in its queue of Kueue; absent: it is in none.
  std::optional<kueue::Standing> queue;
  // How many of the gated pods would find a node at the same time; absent: nobody counts the nodes.
  std::optional<scheduler::GangFit> gang_fit;
  // So long pods may stand Pending for nodes that an autoscaler makes; absent: there is none.
  std::optional<std::chrono::seconds> nodes_within;
  // Pods of it that are to leave for more important jobs.
  std::vector<scheduler::PodDemand> demands;
  // The API server has refused pods of the job, and it is too early to ask for them again.
  bool creation_waits = false;
  // A PodGroup keeps its pods together: the scheduler decides when they start, and nobody counts.
  bool grouped = false;
  Time now;
  // While the planner looks at it; it changes nothing of what is said here.
  mutable const SnapshotIndex* index = nullptr;
};

}  // namespace ringmaster::planner
