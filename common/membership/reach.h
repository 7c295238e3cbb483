// What a member concludes for a campaign from what it knows of the pods of its view: whether enough
// voters may answer, and how many pods campaign before it. Pure. Call these functions only while
// the member is in a view.
#pragma once

#include "common/membership/clause.h"
#include "common/membership/member_state.h"
#include "common/membership/peer_status.h"

namespace ringmaster::membership {

// This member's place in the order of campaigns: how many pods go before it.
int CampaignPosition(const MemberState& state, const PeerStatus& peers);

// Whether the voters that may answer are a quorum. If not, a campaign would only drop members that
// may come back. R counts as one that may answer: whether it can be reached is known only once it
// is asked.
bool QuorumInReach(const MemberState& state, const PeerStatus& peers, ClauseSet without);

// False: the pods that may answer are a quorum without the record, so it is not asked.
bool RecordNeeded(const MemberState& state, const PeerStatus& peers, ClauseSet without);

}  // namespace ringmaster::membership
