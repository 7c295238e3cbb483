// Which pods come and go by plan: those that ask to be let in, those that are to leave, and this
// pod's own request or leave (rules 12 and 13).
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <optional>

#include "common/membership/applicants.h"
#include "common/membership/config.h"
#include "common/membership/drains.h"
#include "common/membership/join_request.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"

namespace ringmaster::membership {

class JoinsAndLeaves {
 public:
  struct Parts {
    MemberState* state;
    PeerStatus* peers;
    LocalWorkers* workers;
    Outbox* outbox;
  };
  // `self`: this pod, as it asks to be let in.
  JoinsAndLeaves(const Parts& parts, const Pod& self, const Timers& timers);

  Drains& drains() { return drains_; }
  const Drains& drains() const { return drains_; }
  Applicants& applicants() { return applicants_; }
  const Applicants& applicants() const { return applicants_; }
  bool left() const { return drains_.left(); }

  // A newer view is known. `was_in`, `was_resigned`: whether this pod was in the former view, and
  // whether it had resigned from it.
  void EnterView(bool was_in, bool was_resigned);
  // Finds out whether this pod has left by plan. `newly`: the view is new, so draining pods that
  // are not in it any more have left, and their requests to join are forgotten.
  void FindDepartures(bool newly);

  // The workers of this pod have changed: its last request is out of date.
  void RenewRequest() { request_.Renew(); }
  // Asks to be let in, if it is time.
  void CheckRequest() { request_.Check(); }
  // Stops the workers in the middle of a step if the deadline of this pod's drain has passed before
  // the boundary came. True: they have stopped, and the pod must resign before it is killed.
  bool DrainOver();
  // The deadline has passed, and this pod has not resigned yet.
  bool about_to_resign() const { return drains_.expired() && !parts_.state->stored().resigned; }

  // `planning`: a planned change has begun, so it waits for no further applicants.
  std::optional<TimePoint> NextDeadline(bool planning) const;

 private:
  // Constant after construction.
  Parts parts_;

  Drains drains_;
  Applicants applicants_;
  JoinRequest request_;
};

}  // namespace ringmaster::membership
