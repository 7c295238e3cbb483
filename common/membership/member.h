// One sidecar's part in the membership of its job: it votes, proposes, resigns, plans and joins.
//  Pure: `Step(event, now)` returns what to do. No sockets, clocks, logs or threads inside; the
// owner calls it from its one loop thread, calls it with `Tick` at `NextDeadline()`, and carries
// out the actions IN ORDER: nothing after a `Persist` may happen before the state is stored.
//
// How an owner uses it:
//   - Give `Started` first, then `WorkersChanged` as soon as the launcher or the workers have said
//     who lives (never before: an unknown worker would count as dead).
//   - `StopWorkers(e)` is answered by `WorkersStopped(e)` when every living local worker has sent
//     `stopped` with an epoch of at least e, or is dead; at once if none lives. A worker that
//     connects meanwhile must get the `stop` too.
//   - `ArmWorkers(e)` is answered by `BoundaryReached(e)` when all local workers of view e have
//     sent `boundary`; it may come again after a restart, for workers that stand there already.
//   - `InstallView(v)`: send `view` to every living worker (self -1 where it has no rank; such a
//     worker is ready again only after a new `enter`). A `stop` of the parent goes before it.
//   - Events and messages may repeat; those about an older view are ignored or answered.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/membership/ballot.h"
#include "common/membership/clause.h"
#include "common/membership/message.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

struct Timers {
  Duration campaign = std::chrono::milliseconds(150);  // times the order, plus jitter up to as much
  Duration retry = std::chrono::milliseconds(100);     // of what was not answered; grows to 8 times
  Duration join_retry = std::chrono::milliseconds(200);
  Duration record_retry = std::chrono::milliseconds(500);
  Duration join_batch = std::chrono::milliseconds(100);  // waits so long for pods still expected
};

struct Config {
  Pod self;  // incarnation: of the membership state, from PersistentState
  std::uint32_t min_pods = 1;
  std::uint64_t seed = 1;  // of the jitter
  Timers timers;
  ClauseSet without;  // for tests: clauses taken out
};

// What must survive a restart of the sidecar (rule 1). A pod that has none starts with a new
// incarnation and an empty rest.
struct PersistentState {
  std::uint64_t incarnation = 0;
  ViewPtr view;  // the newest decided view known
  Ballot promised;
  Ballot accepted;
  ViewPtr accepted_value;
  bool stopping = false;  // the workers have been told to stop: the view is over
  bool resigned = false;
  bool planning = false;      // as the coordinator: members may have been armed
  std::uint64_t lineage = 0;  // promised: takes part in no view of a lower one (rule 9)
};

// ---- Events

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
// The living worker processes of this pod (no standbys), complete.
struct WorkersChanged {
  std::vector<Worker> workers;
};
struct BoundaryReached {
  Epoch epoch = 0;
};
// A local worker has sent `rebuilt`, or a `ping` whose `ran` is this view: an operation of the view
// has completed, so all its ranks hold the state. After a restart of the sidecar too.
struct FirstOperationDone {
  Epoch epoch = 0;
};
struct PodSuspected {
  std::string uid;
  std::string why;
};
// From its heartbeat; `epoch` is the newest view that the peer says it knows, 0 where unknown.
struct PodHeard {
  std::string uid;
  Epoch epoch = 0;
};
// These pods leave by plan (this one or others). At the deadline this pod resigns if it must.
struct DrainRequested {
  std::vector<std::string> uids;
  std::optional<TimePoint> deadline;
};
// The record's answer to a `SendToRecord`.
struct RecordAnswered {
  Message message;
};
struct TargetChanged {
  std::uint32_t min_pods = 1;
  std::uint32_t expected_pods = 0;  // joins wait a moment to come together; 0: not known
};
// The operator asks everybody to make way for a view of this lineage (rule 9). Asked again, it is
// answered again.
struct RecoveryAsked {
  std::uint64_t lineage = 0;
};
// All ranks of the view have agreed to end: nothing is rebuilt any more.
struct Finishing {
  Epoch epoch = 0;
};

using Event =
    std::variant<Started, Tick, MessageReceived, ViewDecided, WorkersStopped, WorkersChanged,
                 BoundaryReached, FirstOperationDone, PodSuspected, PodHeard, DrainRequested,
                 RecordAnswered, TargetChanged, RecoveryAsked, Finishing>;

// ---- Actions

struct Persist {
  PersistentState state;
};
struct Send {
  std::string to;       // pod uid
  std::string address;  // where its rendezvous service listens
  Message message;
};
struct SendToRecord {
  Message message;
};
// Views up to this one are over for good: a worker must stop using them at once.
struct StopWorkers {
  Epoch epoch = 0;
};
struct ArmWorkers {
  Epoch epoch = 0;
};
struct InstallView {
  ViewPtr view;
};
// This pod is out of the job by plan: its workers get `left`. The sidecar runs on until `done()` or
// its grace period ends, to tell those who have not heard.
struct LeftByPlan {
  Epoch epoch = 0;
};
// For the operator: replaces what it was told before.
struct ReportToArbiter {
  RecoveryReport report;
};
struct Log {
  std::string text;  // for people
};

using Action = std::variant<Persist, Send, SendToRecord, StopWorkers, ArmWorkers, InstallView,
                            LeftByPlan, ReportToArbiter, Log>;

enum class Role : std::uint8_t {
  kWaiting,   // no view known yet
  kMember,    // in the current view
  kResigned,  // was in it; all its workers died
  kJoining,   // not in it, wants to be
  kLeft,      // out by plan
};
std::string_view RoleText(Role role);

// Counters for coverage and metrics.
struct MemberCounters {
  std::uint32_t campaigns = 0;            // rounds above 0 begun
  std::uint32_t refused = 0;              // own ballots refused for a higher one
  std::uint32_t decided_by_majority = 0;  // 6a, pods alone
  std::uint32_t decided_by_record = 0;    // 6a, R's vote was needed
  std::uint32_t decided_by_all = 0;       // 6b, resignations were needed
};

class MemberImpl;

class Member {
 public:
  // `config.self.incarnation` is overwritten by `state.incarnation`.
  Member(Config config, PersistentState state);
  ~Member();
  Member(Member&&) noexcept;
  Member& operator=(Member&&) noexcept;

  std::vector<Action> Step(const Event& event, TimePoint now);
  // The same, appended to `out`.
  void Step(const Event& event, TimePoint now, std::vector<Action>* out);

  // When to call with `Tick` next, if at all.
  std::optional<TimePoint> NextDeadline() const;

  Role role() const;
  const ViewPtr& current() const;  // the newest decided view known, or null
  bool is_coordinator() const;     // of the current view
  bool changing() const;           // a successor of the current view is being decided
  bool draining() const;           // this pod has been asked to leave
  bool done() const;               // out by plan and nobody needs it any more: the sidecar may end
  // Every worker of the current view that holds the state is known to be dead, so nothing can go
  // on from it. Not final at once: word that a joiner holds the state by now may be under way.
  bool state_lost() const;
  // In the current view, and knows of nothing that keeps it from training.
  bool able() const;
  const PersistentState& state() const;
  const MemberCounters& counters() const;

 private:
  std::unique_ptr<MemberImpl> impl_;
};

}  // namespace ringmaster::membership
