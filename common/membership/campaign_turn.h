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
  // Waits while the view can't go on as it is (`fault`), unless this member must keep out of it
  // (`may` is false). True: the turn has come.
  bool HasCome(bool fault, bool may);
  // Leaves the others their turn first.
  void Postpone();
  // A pod has resigned. If nothing has been proposed, the order of those that wait is new.
  void RestartOrder();

 private:
  bool Holds(Clause clause) const { return !without_.Has(clause); }

  // Constant after construction.
  Parts parts_;
  ClauseSet without_;

  CampaignTimer timer_;
};

}  // namespace ringmaster::membership
