#include "common/membership/campaign_turn.h"

#include "common/membership/reach.h"

namespace ringmaster::membership {

bool CampaignTurn::HasCome(bool fault, bool may) {
  const MemberState& state = *parts_.state;
  const bool votes = state.voting() || (state.in_view() && !Holds(Clause::kOneAccepted));
  // Without a fault there is no campaign, even if this member has given a promise: the proposer may
  // have suspected a pod wrongly.
  if (!votes || !may || !fault || parts_.workers->finishing()) {
    timer_.Stop();
    return false;
  }
  // Waits for the attempt of another proposer, unless that proposer has gone silent.
  const Ballot& attempt = parts_.acceptor->CurrentBallot();
  const int owner = attempt.none() ? -1 : state.FindPod(attempt.pod);
  const int position = CampaignPosition(state, *parts_.peers);
  const TimePoint now = parts_.outbox->now();
  const bool own = owner == state.self();
  if (owner >= 0 && !own && parts_.peers->suspected(owner)) timer_.Shorten(now, position);
  if (!timer_.at()) {
    if (own) {
      timer_.Expire(now);
    } else {
      timer_.Start(now, position);
    }
  }
  return *timer_.at() <= now;
}

void CampaignTurn::Postpone() {
  timer_.Start(parts_.outbox->now(), CampaignPosition(*parts_.state, *parts_.peers) + 1);
}

void CampaignTurn::RestartOrder() {
  if (!parts_.acceptor->pending() && !parts_.state->stored().accepted_value) timer_.Stop();
}

}  // namespace ringmaster::membership
