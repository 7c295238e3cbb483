// What can happen to a member: the inputs of `Member::Step`. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/membership/config.h"
#include "common/membership/message.h"
#include "common/membership/sizes.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

struct Started {};
struct Tick {};
struct MessageReceived {
  Message message;
  std::string address;  // where the sender's own service listens; may be empty
};
// A decided view, from the operator: the first one, or the newest that the record knows.
struct ViewDecided {
  ViewPtr view;
};
struct WorkersStopped {
  Epoch epoch = 0;
};
// All living worker processes of this pod, without standbys.
struct WorkersChanged {
  std::vector<Worker> workers;
};
struct BoundaryReached {
  Epoch epoch = 0;
};
// A local worker has sent `rebuilt`, or a `ping` whose `ran` is this view: an operation of the view
// has completed, so all its ranks hold the state. Comes again after a restart of the sidecar.
struct FirstOperationDone {
  Epoch epoch = 0;
};
struct PodSuspected {
  std::string uid;
  std::string why;
};
// A heartbeat of the pod has come. `epoch`: the newest view that the pod says it knows; 0: unknown.
struct PodHeard {
  std::string uid;
  Epoch epoch = 0;
};
// These pods leave by plan (this one or others). If this pod is one of them and is still in the
// view at the deadline, it resigns.
struct DrainRequested {
  std::vector<std::string> uids;
  std::optional<TimePoint> deadline;
};
// The record's answer to a `SendToRecord`.
struct RecordAnswered {
  Message message;
};
struct TargetChanged {
  Sizes sizes;
  // Joiners wait a moment for each other until so many pods are there; 0: not known.
  std::uint32_t expected_pods = 0;
};
// The operator asks all pods to give up their views for one of this lineage (rule 9). The member
// answers with `ReportToOperator` each time that it is asked.
struct RecoveryAsked {
  std::uint64_t lineage = 0;
};
// The workers of this pod can't go on in the view, though nobody is known to have died: a
// connection broke. The same members get a new view. `accused`: pods to which the link breaks again
// and again; of two pods with such a link one is left out.
struct LinkBroken {
  Epoch epoch = 0;
  std::vector<std::string> accused;
};
// All ranks of the view have agreed to end the job: no new view is proposed any more.
struct Finishing {
  Epoch epoch = 0;
};

using Event =
    std::variant<Started, Tick, MessageReceived, ViewDecided, WorkersStopped, WorkersChanged,
                 BoundaryReached, FirstOperationDone, PodSuspected, PodHeard, DrainRequested,
                 RecordAnswered, TargetChanged, RecoveryAsked, LinkBroken, Finishing>;

}  // namespace ringmaster::membership
