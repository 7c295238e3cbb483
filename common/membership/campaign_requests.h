// Sends a campaign's request, a prepare or a proposal, to each voter until it answers, ever more
// slowly. The quorum record is asked where the answers of the pods may not be enough.
//
// Owned by Proposer; used by the member's thread only.
#pragma once

#include <optional>
#include <string>

#include "common/membership/campaign.h"
#include "common/membership/clause.h"
#include "common/membership/learner.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"
#include "common/membership/repeat.h"

namespace ringmaster::membership {

class CampaignRequests {
 public:
  struct Parts {
    const MemberState* state;
    const PeerStatus* peers;
    Learner* learner;
    Outbox* outbox;
  };
  CampaignRequests(const Parts& parts, Duration retry, ClauseSet without)
      : parts_(parts), retry_(retry), without_(without) {}

  // The campaign is over or goes on to another request.
  void Stop() { repeat_.Stop(); }
  const std::optional<TimePoint>& at() const { return repeat_.at; }
  // It is time to send the request again.
  bool Due() const { return repeat_.Due(parts_.outbox->now()); }
  // It was sent so often without an answer that only a higher ballot may bring one.
  bool Exhausted() const;

  // To all voters that have not answered.
  void Send(const Campaign& campaign);
  void SendTo(const std::string& pod, const Campaign& campaign);

 private:
  // Constant after construction.
  Parts parts_;
  Duration retry_;
  ClauseSet without_;

  Repeat repeat_;
};

}  // namespace ringmaster::membership
