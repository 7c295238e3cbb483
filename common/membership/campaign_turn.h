// When this member's turn to campaign comes: at once for the first in the order, later for each
// next one, and not at all while the view can go on (rule 11).
//
// Owned by Succession; used by the member's thread only.
#pragma once

#include <cstdint>
#include <optional>

#include "common/membership/acceptor.h"
#include "common/membership/campaign.h"
#include "common/membership/clause.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"

namespace ringmaster::membership {

class CampaignTurn {
 public:
  struct Parts {
    const MemberState* state;
    const PeerStatus* peers;
    const LocalWorkers* workers;
    const Acceptor* acceptor;
    const Outbox* outbox;
  };
  // `step`: the wait for each place in the order.
  CampaignTurn(const Parts& parts, Duration step, std::uint64_t seed, ClauseSet without)
      : parts_(parts), without_(without), timer_(step, seed) {}

  const std::optional<TimePoint>& at() const { return timer_.at(); }
  void Stop() { timer_.Stop(); }
  // Call whenever something has changed. `fault`: the view can't go on as it is. `may`: this member
  // may campaign. The wait begins when both are true and this member has a vote. True: the turn has
  // come.
  bool HasCome(bool fault, bool may);
  // Starts the wait anew, one place further back in the order, so that others have their turn
  // first.
  void Postpone();
  // Call when a pod has resigned: its place in the order is free, so the wait begins anew, unless a
  // value has been proposed already.
  void RestartOrder();

 private:
  bool Holds(Clause clause) const { return !without_.Has(clause); }

  // Constant after construction.
  Parts parts_;
  ClauseSet without_;

  CampaignTimer timer_;
};

}  // namespace ringmaster::membership
