#include "common/membership/reach.h"

#include "common/membership/quorum.h"

namespace ringmaster::membership {
namespace {

struct Reach {
  std::size_t votes = 0;
  bool all = true;  // every pod may answer or has resigned
};

Reach CountReachable(const MemberState& state, const PeerStatus& peers) {
  Reach reach;
  const int pods = static_cast<int>(state.view().pods.size());
  for (int i = 0; i < pods; ++i) {
    const bool answers = i == state.self() ? state.voting() : !peers.Gone(i);
    reach.votes += answers ? 1 : 0;
    reach.all = reach.all && (answers || peers.resigned(i));
  }
  return reach;
}

}  // namespace

int CampaignPosition(const MemberState& state, const PeerStatus& peers) {
  const int self = state.self();
  const int coordinator = state.FindPod(state.view().coordinator);
  if (coordinator == self) return 0;
  int position = coordinator >= 0 && !peers.Gone(coordinator) ? 1 : 0;
  for (int i = 0; i < self; ++i) {
    if (i != coordinator && !peers.Gone(i)) ++position;
  }
  return position;
}

bool QuorumInReach(const MemberState& state, const PeerStatus& peers, ClauseSet without) {
  Reach reach = CountReachable(state, peers);
  if (reach.all && (reach.votes > 0 || without.Has(Clause::kOneAccepted))) return true;
  if (RecordHasVote(state.view(), without)) ++reach.votes;
  return reach.votes >= MajorityOf(state.view(), without);
}

bool RecordNeeded(const MemberState& state, const PeerStatus& peers, ClauseSet without) {
  const Reach reach = CountReachable(state, peers);
  return !reach.all && reach.votes < MajorityOf(state.view(), without);
}

}  // namespace ringmaster::membership
