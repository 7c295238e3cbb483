// A HorovodJob as C++ types, with its conversion from and to JSON. The command line (before apply),
// the operator and the tests use the same parser, so a wrong manifest gets the same error message
// everywhere.
//
// Everything here is a plain value or a pure function.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "common/failure_policy/failure_policy.h"
#include "operator/api/field_error.h"
#include "operator/api/pod_template.h"

namespace ringmaster::api {

inline constexpr char kApiVersion[] = "ringmaster.dev/v1alpha1";
inline constexpr char kKind[] = "HorovodJob";
// <job>-worker-<index> has to be a DNS label (63 characters), whatever the index.
inline constexpr int kMaxNameLength = 50;
inline constexpr int kMaxReplicas = 10000;
// The largest number of workers of a job: the quorum record of more would not fit into an API
// object.
inline constexpr int kMaxWorkers = 16384;

enum class OnBelowMin { kWait, kFailJob };
enum class OnQuorumLoss { kWait, kRestartFromCheckpoint };
enum class CleanPodPolicy { kRunning, kAll, kNone };
using FailureAction = failure_policy::Action;

struct ElasticPolicy {
  int min_replicas = 1;
  std::optional<int> max_replicas;   // absent: `replicas` is unbounded
  int resize_interval_seconds = 30;  // between growths that the operator starts
  std::vector<int> allowed_sizes;    // in pods; empty: every size
  OnBelowMin on_below_min = OnBelowMin::kWait;
  OnQuorumLoss on_quorum_loss = OnQuorumLoss::kWait;
  int standby_per_pod = 0;
  int stopped_worker_seconds = 1;
  friend bool operator==(const ElasticPolicy&, const ElasticPolicy&) = default;
};

struct WorkerSpec {
  int replicas = 1;
  Json pod_template = Json::object();  // a PodTemplateSpec, as the user wrote it
  friend bool operator==(const WorkerSpec&, const WorkerSpec&) = default;
};

// The pods should be near each other: on nodes with the same value of a label.
struct TopologyPolicy {
  std::string label;      // empty: the pods may be anywhere
  bool required = false;  // false: the job prefers spreading to waiting
  friend bool operator==(const TopologyPolicy&, const TopologyPolicy&) = default;
};

struct SchedulingPolicy {
  std::string priority_class;
  std::string queue;
  TopologyPolicy topology;
  friend bool operator==(const SchedulingPolicy&, const SchedulingPolicy&) = default;
};

struct RunPolicy {
  bool suspend = false;
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  std::optional<int> ttl_seconds_after_finished;
  std::optional<int> active_deadline_seconds;
  int backoff_limit = 6;
  std::string managed_by;
  SchedulingPolicy scheduling_policy;
  friend bool operator==(const RunPolicy&, const RunPolicy&) = default;
};

using FailureRule = failure_policy::Rule;

struct FailurePolicy {
  std::vector<FailureRule> rules;
  int node_cooldown_seconds = 600;
  friend bool operator==(const FailurePolicy&, const FailurePolicy&) = default;
};

struct Spec {
  int slots_per_worker = 1;
  int init_timeout_seconds = 600;
  ElasticPolicy elastic_policy;
  WorkerSpec worker;
  RunPolicy run_policy;
  FailurePolicy failure_policy;
  Json failure_policy_json = Json::object();  // for the launcher, with defaults
  Json collectives = Json::object();          // for the library, with defaults
  // A digest of what may change only while the job is suspended, as the user wrote it: pods that
  // were made from another one must not run on. Fields with their defaults are left out, so that a
  // new field of a later version changes no digest.
  std::string pods_digest;
  friend bool operator==(const Spec&, const Spec&) = default;
};

struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
  std::string last_transition_time;
  std::int64_t observed_generation = 0;
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct RingEntry {
  int rank = 0;
  std::string pod;
  int slot = 0;
  std::string node;
  friend bool operator==(const RingEntry&, const RingEntry&) = default;
};

struct LastRebuild {
  std::uint64_t epoch = 0;
  std::string reason;
  double seconds = 0;
  std::int64_t steps_lost = 0;
  friend bool operator==(const LastRebuild&, const LastRebuild&) = default;
};

// A node on which workers were lost or failed repeatedly: new pods avoid it until `avoid_until`
// (failurePolicy.nodeCooldownSeconds).
struct TroubledNode {
  std::string name;
  int failures = 0;
  std::string last_failure;  // RFC 3339
  std::string avoid_until;   // RFC 3339; empty: not avoided so far
  std::string reason;
  friend bool operator==(const TroubledNode&, const TroubledNode&) = default;
};

// The newest exit of a worker that the status counts, of those in this slot of the pod. Sidecars
// tell every operator of their newest exits.
struct CountedExit {
  std::string pod;  // uid
  int slot = 0;
  std::uint64_t incarnation = 0;  // of the process that ended
  friend bool operator==(const CountedExit&, const CountedExit&) = default;
};

struct ReplicaStatus {
  int active = 0;
  int succeeded = 0;
  int failed = 0;
  friend bool operator==(const ReplicaStatus&, const ReplicaStatus&) = default;
};

struct Status {
  std::string state;  // one word for people: the State column
  std::vector<Condition> conditions;
  ReplicaStatus worker;
  int replicas = 0;      // scale subresource: pods that run or are about to
  std::string selector;  // scale subresource
  std::uint64_t epoch = 0;
  int world_size = 0;
  std::vector<RingEntry> ring;
  int ring_omitted = 0;  // ranks that `ring` leaves out
  std::optional<LastRebuild> last_rebuild;
  std::int64_t steps_lost = 0;  // sum over all rebuilds
  // The steps since the checkpoint are lost at such a restart, too; their number is unknown, so
  // only the restarts are counted.
  int restarts_from_checkpoint = 0;
  int worker_restarts = 0;  // in place, by the launcher
  int pods_replaced = 0;
  int faults = 0;                           // faults of the application, which backoffLimit bounds
  std::uint64_t finished_epoch = 0;         // all ranks of this view agreed to end
  std::vector<std::string> accounted_pods;  // uids of ended pods whose end is counted above
  // Of the pods that still exist, exits that are counted above.
  std::vector<CountedExit> counted_exits;
  // How many counted exits of such pods that list lacks, at least. Absent while no exit is counted,
  // or where an operator of an earlier version, or an API server with its schema, has kept no list.
  std::optional<int> counted_exits_omitted;
  std::string last_growth_time;  // when the job last grew because capacity had appeared
  // Of its pods, as the API server writes or would write it on them; nullopt: it has not said.
  std::optional<int> priority;
  int times_given_back = 0;  // pods that did not all find a node, since the job last ran
  std::string last_given_back_time;
  // Members of the newest view whose death is proven: the proof is needed longer than their objects
  // exist.
  std::vector<std::string> proven_dead;  // pod uids
  std::vector<TroubledNode> troubled_nodes;
  std::string start_time;     // when the operator accepted the job, or the job was resumed
  std::string running_since;  // since then minReplicas of its pods have run
  std::string completion_time;
  std::int64_t observed_generation = 0;
  friend bool operator==(const Status&, const Status&) = default;

  const Condition* Find(const std::string& type) const;
  bool Is(const std::string& type) const;  // the condition exists and is True
  // An operator has accepted the job.
  bool TakenUp() const { return !start_time.empty() || !completion_time.empty(); }
};

struct HorovodJob {
  std::string name;
  std::string ns = "default";
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  bool deleting = false;
  std::map<std::string, std::string> annotations;
  // The Kueue queue: schedulingPolicy.queue or, if that is empty, the label; empty: no queue.
  std::string queue;
  std::string queue_priority_class;  // from the label; empty: the pods' priority counts
  Spec spec;
  Status status;
  std::vector<std::string> ignored_fields;  // paths: see UnknownFields

  std::string Key() const { return ns + "/" + name; }
  // The largest number of pods that the job may run now: replicas within [min, max], rounded down
  // to an allowed size; 0 if replicas is 0.
  int WantedPods() const;
  // The same, with at most `most` pods, which a queue has granted (`most` must be LeastPods() or
  // more).
  int WantedPodsOf(int most) const;
  int MaxPods() const;
  // With fewer pods the job doesn't train: minReplicas, rounded up to an allowed size.
  int LeastPods() const;
  // The job should have no pods for now.
  bool Suspended() const { return spec.run_policy.suspend || spec.worker.replicas == 0; }
};

// kIgnore: for objects of an API server. It stores only fields that the CRD knows, so fields that
// are unknown here are of a later CRD. It shows their defaults even in jobs of before, so that each
// job would be wrong until this program is of that version, too.
enum class UnknownFields { kRefuse, kIgnore };

// Parses strictly: reports every unknown field (unless they are ignored), wrong type and forbidden
// value with its path. Defaults are filled in. `status` is read leniently, because an older or
// newer operator may have written it.
tl::expected<HorovodJob, FieldErrors> ParseHorovodJob(
    const Json& object, UnknownFields unknown = UnknownFields::kRefuse);

// Reports changed fields that may never change, or only while the job is suspended, because all
// pods of a job have to be alike.
FieldErrors CheckUpdate(const Spec& before, const Spec& after);

const char* ToString(CleanPodPolicy policy);

Json StatusToJson(const Status& status);
Status StatusFromJson(const Json& status);

}  // namespace ringmaster::api
