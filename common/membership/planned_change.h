// A planned change of the view: the coordinator has all workers armed, and when all pods stand at
// the same step's boundary it proposes the successor (rule 12).
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "common/membership/clause.h"
#include "common/membership/config.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/repeat.h"

namespace ringmaster::membership {

class PlannedChange {
 public:
  struct Parts {
    MemberState* state;
    LocalWorkers* workers;
    Outbox* outbox;
  };
  PlannedChange(const Parts& parts, const Timers& timers, ClauseSet without);

  // Call when the state's view has changed.
  void EnterView();
  // This member coordinates and has restarted. It has forgotten what its plan was for, but workers
  // may stand at the plan's boundary, so it begins a plan again rather than leave them there.
  void Resume();

  // Handles kPlan, which the coordinator sends. True: the coordinator does not know that this pod
  // stands at the boundary.
  bool OnPlan(const Message& message);
  // Handles kBoundary, which pod `from` sends to the coordinator.
  void OnBoundary(const Message& message, int from);
  // The workers of this pod stand at the boundary. False: nothing new.
  bool SetOwnBoundary();

  // Goes on with the plan. `may`: this member coordinates, and no fault or campaign has to be
  // handled first. `wanted`: there is something to change. Returns true when all pods stand at the
  // boundary, so the successor may be proposed.
  bool Advance(bool may, bool wanted);

  bool begun() const { return number_ != 0; }
  std::uint64_t number_heard() const { return number_heard_; }
  bool at_boundary(int pod) const { return at_boundary_[pod]; }
  bool AllAtBoundary() const;
  const Repeat& repeat() const { return repeat_; }

 private:
  std::uint64_t NewNumber() const;
  void Start(std::uint64_t number);
  void SendPlan();

  // Constant after construction.
  Parts parts_;
  Duration retry_;
  ClauseSet without_;

  std::uint64_t number_ = 0;        // of the plan of this member as the coordinator; 0: none
  std::uint64_t number_heard_ = 0;  // the highest number of a plan that this member has heard of
  std::vector<bool> at_boundary_;   // one for each pod
  Repeat repeat_;
};

}  // namespace ringmaster::membership
