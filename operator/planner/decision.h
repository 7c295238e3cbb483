// What the planner wants done. The fields are applied in their order; applying one of them twice
// does no harm.
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/membership/sizes.h"
#include "common/membership/view.h"
#include "operator/api/horovod_job.h"
#include "operator/api/time.h"
#include "operator/kueue/pod_changes.h"
#include "operator/provisioning/request.h"
#include "operator/scheduler/holding.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::planner {

using api::Time;

struct PodCreate {
  int index = 0;
  std::string reason;
  std::vector<std::string> avoid;     // nodes to avoid if another one will do
  std::vector<std::string> keep_off;  // nodes to avoid in any case
  // Nodes whose end is announced but which this pod may use: reasons by node.
  std::map<std::string, std::string> announced;
  bool grouped = false;   // it joins the job's PodGroup
  bool shielded = false;  // autoscalers must not move it: the job has yet to start
  // Restricts it to nodes with this value of the topology's label; empty: any node.
  std::string domain;
  // Nothing is free: it stands Pending so that an autoscaler makes a node.
  bool calls_for_nodes = false;
  // Changes by the admission of its queue; null: no queue.
  std::shared_ptr<const kueue::PodChanges> of_queue;
  // It may use this capacity; null: none is booked for it.
  std::shared_ptr<const provisioning::Booking> booking;
};

// Marks the pod, so that it continues to leave even if the operator restarts.
struct PodDrain {
  std::string name;
  std::string uid;
  std::string reason;
  std::string details;  // for people; empty: the reason says it all
};

struct PodDelete {
  std::string name;
  std::string uid;
  std::string reason;
};

// A ProvisioningRequest that is of no use any more.
struct RequestDrop {
  std::string name;
  std::string uid;
};

struct PodAnnotate {
  std::string name;
  std::string key;
  std::string value;  // empty: the annotation is removed
};

// Removes our finalizer, so that a deleted object can disappear.
struct PodRelease {
  std::string name;
  std::string uid;
  std::string reason;
  bool at_once = false;  // there is no kubelet that would confirm its end
  // The version of the object that was planned with: if the pod has changed since, it may have
  // become a member, and stays. Empty: whatever has changed.
  std::string as_seen;
};

// Messages to sidecars; proto/operator.proto says what each means.
struct ViewDecidedNotice {
  membership::ViewPtr view;
  friend bool operator==(const ViewDecidedNotice& a, const ViewDecidedNotice& b) {
    return membership::EpochOf(a.view) == membership::EpochOf(b.view);
  }
};

// Lists of pods are shared by the notices to all sidecars: a thousand sidecars that hear of a
// thousand pods hold one list. Never null.
using Uids = std::shared_ptr<const std::vector<std::string>>;
struct GonePod {
  std::string uid;
  std::string reason;  // "PodGone", or the proof of its death
  friend auto operator<=>(const GonePod&, const GonePod&) = default;
};
using GonePods = std::shared_ptr<const std::vector<GonePod>>;  // sorted

template <class T>
bool SameList(const std::shared_ptr<const std::vector<T>>& a,
              const std::shared_ptr<const std::vector<T>>& b) {
  return a == b || *a == *b;
}

struct DrainNotice {
  Uids pod_uids;
  std::string reason;
  std::int64_t deadline_unix_ms = 0;
  bool all_leave = false;  // no pod of the job takes over
  friend bool operator==(const DrainNotice& a, const DrainNotice& b) {
    return a.reason == b.reason && a.deadline_unix_ms == b.deadline_unix_ms &&
           a.all_leave == b.all_leave && SameList(a.pod_uids, b.pod_uids);
  }
};
// All members of the view that are gone.
struct PodsGoneNotice {
  GonePods pods;
  friend bool operator==(const PodsGoneNotice& a, const PodsGoneNotice& b) {
    return SameList(a.pods, b.pods);
  }
};
struct TargetNotice {
  membership::Sizes sizes;
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
struct ViewWantedNotice {
  membership::Epoch epoch = 0;
  friend bool operator==(const ViewWantedNotice&, const ViewWantedNotice&) = default;
};
using Notice = std::variant<ViewDecidedNotice, DrainNotice, PodsGoneNotice, TargetNotice,
                            FinishNotice, RecoverNotice, ViewWantedNotice>;

inline Uids UidsOf(std::vector<std::string> uids) {
  return std::make_shared<const std::vector<std::string>>(std::move(uids));
}
inline PodsGoneNotice PodsGoneOf(std::vector<GonePod> pods) {
  std::sort(pods.begin(), pods.end());
  return {std::make_shared<const std::vector<GonePod>>(std::move(pods))};
}

struct PodNotice {
  std::string pod_uid;
  Notice notice;
};

struct Event {
  bool warning = false;
  std::string reason;
  std::string message;
  std::string pod;  // empty: the event is about the job
};

struct Decision {
  // Creates the record with this first view, or ends the recovery with it. A recovery ends only if
  // EvaluateRecovery() finds the same view for pods that are listed afterwards, because these pods
  // may come from a cache.
  membership::ViewPtr first_view;
  // Moves the record to this lineage, which begins a recovery from quorum loss; 0: none begins.
  std::uint64_t recover = 0;
  Event recover_event;  // emitted once the record has been written
  std::vector<PodDrain> drains;
  std::vector<PodAnnotate> annotations;
  // Everything that each sidecar should know by now; the registry sends only what is new.
  std::vector<PodNotice> notices;
  std::vector<PodDelete> deletes;
  // None of them is left to the next look: half of these pods are of no use, and hold what others
  // could use.
  bool deletes_are_one = false;
  std::vector<PodCreate> creates;
  // This many more pods are wanted, and are not created before their turn comes.
  int kept_back = 0;
  // This many of the creates must succeed: with fewer pods the job can't train. If the API server
  // refuses some of them, the created ones are deleted, together with `useless_alone`.
  int least_creates = 0;
  std::vector<PodDelete> useless_alone;
  std::vector<PodRelease> releases;
  // ProvisioningRequests: those that go, then the one that is made.
  std::vector<RequestDrop> request_drops;
  std::optional<provisioning::Wanted> request;
  bool delete_job = false;
  // Nothing else is done before `status` is written, because whoever decides next must know of it:
  // who was told that all leave can't be called back, and pods that are deleted can't be counted.
  bool status_first = false;
  api::Status status;
  std::size_t exits_counted = 0;  // this many of Snapshot::exits are counted in `status`
  std::vector<Event> events;      // to be emitted after the status has been written
  std::optional<std::chrono::milliseconds> look_again;

  // Numbers of pods to be created that are of use together, ascending, and since when the job has
  // stood in line for them.
  std::vector<int> gang_sizes;
  scheduler::GangState gang_state = scheduler::GangState::kWaits;
  Time in_line_since;
  // An autoscaler is asked for nodes for the job, which has yet to start: by pods that stand
  // Pending, or by a ProvisioningRequest.
  bool calls_for_nodes = false;
  bool may_call = true;  // false: an autoscaler has just refused it nodes
  // What the job could give to more important jobs; absent if it doesn't train. Its name and
  // priority are not set.
  std::optional<scheduler::Holding> holding;
};

}  // namespace ringmaster::planner
