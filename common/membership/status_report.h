// What the others must know from this member about the current view, repeated until a newer view
// comes. A member that has resigned tells all members so. Any other member tells all members which
// of its workers are lost, and tells the coordinator which pods are silent, that a link is broken,
// that its workers stand at the boundary, and which pods leave.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include "common/membership/config.h"
#include "common/membership/drains.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"
#include "common/membership/planned_change.h"
#include "common/membership/rank_status.h"
#include "common/membership/repeat.h"
#include "common/membership/succession.h"

namespace ringmaster::membership {

class StatusReport {
 public:
  struct Parts {
    const MemberState* state;
    const PeerStatus* peers;
    const RankStatus* ranks;
    const LocalWorkers* workers;
    const PlannedChange* plan;
    const Drains* drains;
    const Succession* succession;
    Outbox* outbox;
  };
  StatusReport(const Parts& parts, Duration retry) : parts_(parts), retry_(retry) {}

  // There is news, or a new view: the next report is sent at once.
  void Renew() { repeat_.Stop(); }
  // Sends the report if it is time and it has any content.
  void Check();
  const Repeat& repeat() const { return repeat_; }

 private:
  void SendToAll();
  void SendToCoordinator();

  // Constant after construction.
  Parts parts_;
  Duration retry_;

  Repeat repeat_;
};

}  // namespace ringmaster::membership
