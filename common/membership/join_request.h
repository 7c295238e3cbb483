// This pod's request to have workers let into a view, repeated until they are (rule 13).
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <optional>

#include "common/membership/applicants.h"
#include "common/membership/config.h"
#include "common/membership/drains.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/repeat.h"

namespace ringmaster::membership {

class JoinRequest {
 public:
  struct Parts {
    const MemberState* state;
    const LocalWorkers* workers;
    const Drains* drains;
    Applicants* applicants;
    Outbox* outbox;
  };
  JoinRequest(const Parts& parts, const Pod& self, const Timers& timers)
      : parts_(parts), self_(self), retry_(timers.join_retry), link_rest_(timers.link_rest) {}

  // A newer view is known. `was_in`, `was_resigned`: whether this pod was in the former view, and
  // whether it had resigned from it.
  void EnterView(bool was_in, bool was_resigned);
  // The workers have changed: the last request is out of date.
  void Renew() { repeat_.Stop(); }
  // Sends the request if it is time.
  void Check();
  const Repeat& repeat() const { return repeat_; }

 private:
  std::optional<Message> RequestMessage() const;
  bool Replaced() const;
  // Makes the pod wait before it asks again, because it was left out for a link that keeps
  // breaking: each return would stop the others again.
  void RestAfterBrokenLink();

  // Constant after construction.
  Parts parts_;
  Pod self_;
  Duration retry_;
  Duration link_rest_;

  Reason reason_ = Reason::kPodJoined;
  Repeat repeat_;
  TimePoint rests_until_{};
  int rests_ = 0;  // in a row
};

}  // namespace ringmaster::membership
