// One sidecar's part in the membership of its job: it votes, proposes, resigns, plans and joins.
//
// Pure: `Step(event, now)` returns what to do. It uses no sockets, clocks, logs or threads. The
// owner calls it from its one loop thread, also with `Tick` at `NextDeadline()`, and carries out
// the actions IN ORDER: nothing after a `Persist` may happen before the state is stored.
//
// How an owner uses it:
//   - Give `Started` first, then `WorkersChanged` as soon as launcher or workers have reported
//     which workers live (never before: an unknown worker would count as dead).
//   - Answer `StopWorkers(e)` with `WorkersStopped(e)` when every local worker has sent `stopped`
//     with an epoch of at least e, or is dead; at once if none lives. A worker that connects
//     meanwhile must get the `stop` too.
//   - Answer `ArmWorkers(e)` with `BoundaryReached(e)` when all local workers of view e have sent
//     `boundary`. The order may come again after a restart, for workers that stand there already.
//   - `InstallView(v)`: send `view` to every living worker (self -1 where it has no rank; such a
//     worker is ready again only after a new `enter`). A `stop` of the parent goes before it.
//   - Events and messages may repeat; those about an older view are ignored or answered.
//
// The parts, each with a header of its own; member_impl.h wires them:
//   member_state     which view it is in, and what it has promised: the state that is stored
//   succession       decides the view's successor (Paxos): acceptor, proposer (campaign), learner
//   peer_status      which pods are silent, accused, resigned; reach: who may still vote
//   rank_status      which workers have died, and whether any still holds the training state
//   local_workers    the workers of this pod: living, ordered to stop, armed
//   successor        the value to propose, from all that is known (next_view computes it)
//   planned_change   arm, boundary, propose
//   joins_and_leaves who comes and goes by plan: drains, applicants, join_request
//   lineage_promise  the part of a member in a recovery from quorum loss
//   record_copy, status_report   what is repeated until the receiver has it
//   outbox           the actions of one step, in their order
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/membership/action.h"
#include "common/membership/config.h"
#include "common/membership/event.h"
#include "common/membership/member_counters.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

enum class Role : std::uint8_t {
  kWaiting,   // no view known yet
  kMember,    // in the current view
  kResigned,  // was in it; all its workers died
  kJoining,   // not in it, wants to be
  kLeft,      // out by plan
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
  bool admits() const;             // this pod coordinates, and others wait to be let in
  bool done() const;               // out by plan and the record knows it: the sidecar may end
  // Every worker of the current view that holds the state is known to be dead, so nothing can go
  // on from it. Not final at once: a message that a joiner holds the state by now may be under way.
  bool state_lost() const;
  // The least number of pods with which the job trains, as this member was last told.
  std::uint32_t min_pods() const;
  // In the current view, and knows of nothing that keeps it from training.
  bool able() const;
  // In the current view, whose ranks have all agreed to end the job.
  bool finishing() const;
  const PersistentState& state() const;
  MemberCounters counters() const;

 private:
  std::unique_ptr<MemberImpl> impl_;
};

}  // namespace ringmaster::membership
