// What a campaign asks of the voters, sent until they answer: a prepare or a proposal to each that
// has not answered yet, ever more slowly, and to the quorum record where the pods are not enough.
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

  // Nothing is asked any more, or something else.
  void Stop() { repeat_.Stop(); }
  const std::optional<TimePoint>& at() const { return repeat_.at; }
  // Some voters have not answered for a while: to be sent again.
  bool Due() const { return repeat_.Due(parts_.outbox->now()); }
  // So many requests were not answered that only a higher ballot may bring an answer.
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
