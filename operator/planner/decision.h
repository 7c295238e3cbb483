// What the planner wants done. Applied in the order of the fields; doing one of them twice does no
// harm.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/membership/view.h"
#include "operator/api/horovod_job.h"
#include "operator/api/time.h"
#include "operator/kueue/pod_changes.h"
#include "operator/scheduler/admission.h"

namespace ringmaster::planner {

using api::Time;

struct PodCreate {
  int index = 0;
  std::string reason;
  std::vector<std::string> avoid;     // nodes, if any other will do
  std::vector<std::string> keep_off;  // nodes, whatever else there is
  // Ends of nodes that are announced and would not keep the pod off: reasons by node.
  std::map<std::string, std::string> announced;
  bool granted = false;   // it may look for a node at once: no gate
  bool grouped = false;   // in the job's PodGroup
  bool shielded = false;  // autoscalers are to leave it where it is: the job has yet to start
  std::string domain;     // on nodes with this value of the topology's label; empty: on any
  std::shared_ptr<const kueue::PodChanges> of_queue;  // of its admission; null: it is in none
};

// Marks the pod, so that it goes on leaving whatever happens to the operator.
struct PodDrain {
  std::string name;
  std::string uid;
  std::string reason;
};

struct PodDelete {
  std::string name;
  std::string uid;
  std::string reason;
};

// Lifts the scheduling gate: the pod may start.
struct PodAdmit {
  std::string name;
  std::string uid;
  std::string domain;            // as PodCreate's
  bool calls_for_nodes = false;  // there is no room: it stands Pending so that nodes are made
};

struct PodAnnotate {
  std::string name;
  std::string key;
  std::string value;  // empty: the annotation is removed
};

// Takes our finalizer off, so that a deleted object can go.
struct PodRelease {
  std::string name;
  std::string uid;
  std::string reason;
  bool at_once = false;  // no kubelet will say that it has ended
  bool as_seen = false;  // only if nobody has written the pod since: it may have become a member
};

// What sidecars are told; proto/operator.proto says what each means.
struct ViewDecidedNotice {
  membership::ViewPtr view;
  friend bool operator==(const ViewDecidedNotice& a, const ViewDecidedNotice& b) {
    return membership::EpochOf(a.view) == membership::EpochOf(b.view);
  }
};
struct DrainNotice {
  std::vector<std::string> pod_uids;
  std::string reason;
  std::int64_t deadline_unix_ms = 0;
  friend bool operator==(const DrainNotice&, const DrainNotice&) = default;
};
struct PodGoneNotice {
  std::string pod_uid;
  std::string reason;  // "PodGone", or the proof of its death
  friend bool operator==(const PodGoneNotice&, const PodGoneNotice&) = default;
};
struct TargetNotice {
  std::uint32_t min_pods = 0;
  std::uint32_t expected_pods = 0;
  friend bool operator==(const TargetNotice&, const TargetNotice&) = default;
};
struct FinishNotice {
  std::string reason;
  friend bool operator==(const FinishNotice&, const FinishNotice&) = default;
};
struct RecoverNotice {
  std::uint64_t lineage = 0;
  bool fresh_workers = false;
  friend bool operator==(const RecoverNotice&, const RecoverNotice&) = default;
};
using Notice = std::variant<ViewDecidedNotice, DrainNotice, PodGoneNotice, TargetNotice,
                            FinishNotice, RecoverNotice>;

struct PodNotice {
  std::string pod_uid;
  Notice notice;
};

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
  std::string pod;  // empty: about the job
};

struct Decision {
  // Make the record with this first view; or end the recovery with it. Then only if
  // EvaluateRecovery() says the same of the pods as listed afterwards: these may be of a cache.
  membership::ViewPtr first_view;
  std::uint64_t recover = 0;  // move the record to this lineage: a recovery from quorum loss begins
  Event recover_event;        // tells of that, once the record says so
  std::vector<PodDrain> drains;
  std::vector<PodAnnotate> annotations;
  // All that each sidecar should know by now; the registry sends what is new.
  std::vector<PodNotice> notices;
  std::vector<PodDelete> deletes;
  std::vector<PodAdmit> admits;
  std::vector<PodCreate> creates;
  // So many of the creates that are granted have to be made: with fewer the job can't train. Where
  // the API server refuses the others, those that were made go again, and these with them.
  int least_creates = 0;
  std::vector<PodDelete> useless_alone;
  std::vector<PodRelease> releases;
  bool delete_job = false;
  api::Status status;
  std::size_t exits_counted = 0;  // of Snapshot::exits: in `status` now
  std::vector<Event> events;      // after the status has been written
  std::optional<std::chrono::milliseconds> look_again;

  // How many of those that wait (gated pods by index, then creates) are of use together, ascending,
  // and since when the job stands in line for them.
  std::vector<int> gang_sizes;
  scheduler::Standing gang_standing = scheduler::Standing::kWaits;
  Time in_line_since;
  // Pods of the job, which has yet to start, stand Pending so that an autoscaler makes nodes.
  bool calls_for_nodes = false;
  // What it could give to more important jobs; absent: it doesn't train. Whose it is, and how
  // important, is not said.
  std::optional<scheduler::Holding> holding;
};

}  // namespace ringmaster::planner
