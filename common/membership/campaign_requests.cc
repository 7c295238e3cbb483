#include "common/membership/campaign_requests.h"

#include <utility>

#include "common/membership/reach.h"

namespace ringmaster::membership {
namespace {

constexpr int kRequestsPerBallot = 5;

Message RequestOf(const Campaign& campaign, const Outbox& outbox) {
  const bool preparing = campaign.phase == Campaign::Phase::kPreparing;
  Message message = outbox.MakeMessage(preparing ? MessageKind::kPrepare : MessageKind::kPropose);
  message.ballot = campaign.ballot;
  if (!preparing) message.value = campaign.value;
  return message;
}

}  // namespace

bool CampaignRequests::Exhausted() const { return Due() && repeat_.times >= kRequestsPerBallot; }

void CampaignRequests::SendTo(const std::string& pod, const Campaign& campaign) {
  parts_.outbox->SendTo(pod, RequestOf(campaign, *parts_.outbox));
}

void CampaignRequests::Send(const Campaign& campaign) {
  const View& view = parts_.state->view();
  Message message = RequestOf(campaign, *parts_.outbox);
  const VoterSet& answered = campaign.phase == Campaign::Phase::kPreparing
                                 ? campaign.promises
                                 : parts_.learner->Votes(campaign.ballot, campaign.value);
  for (std::size_t i = 0; i < view.pods.size(); ++i) {
    if (answered.Has(i) || parts_.peers->resigned(static_cast<int>(i))) continue;
    parts_.outbox->SendTo(view.pods[i], message);
  }
  // With each repeat the record is asked in any case: pods that seem to live have not answered.
  const bool ask_record =
      RecordHasVote(view, without_) &&
      (repeat_.times > 0 || RecordNeeded(*parts_.state, *parts_.peers, without_));
  if (ask_record && !answered.Has(RecordIndex(view))) {
    message.base = parts_.state->stored().view;
    parts_.outbox->Emit(SendToRecord{std::move(message)});
  }
  repeat_.Again(parts_.outbox->now(), retry_);
}

}  // namespace ringmaster::membership
