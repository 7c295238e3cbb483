#include "common/membership/join_request.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {
namespace {

constexpr int kLongestRest = 5;  // doublings
// When a pod has not been left out again for the time of so many longest rests, its links count as
// mended, and its next rest is the shortest.
constexpr int kForgotten = 4;

}  // namespace

void JoinRequest::EnterView(bool was_in, bool was_resigned) {
  repeat_.Stop();
  if (was_in && !parts_.state->in_view()) {
    reason_ = was_resigned ? Reason::kWorkerJoined : Reason::kRejoin;
    if (parts_.state->view().reason == Reason::kLinkBroken && !was_resigned) RestAfterBrokenLink();
  }
}

void JoinRequest::RestAfterBrokenLink() {
  const TimePoint now = parts_.outbox->now();
  if (now > rests_until_ + link_rest_ * (kForgotten << kLongestRest)) rests_ = 0;
  const Duration rest = link_rest_ * (1 << std::min(rests_++, kLongestRest));
  rests_until_ = now + rest;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest).count();
  parts_.outbox->EmitLog("left out because the link to another pod keeps breaking: comes back in " +
                         std::to_string(seconds) + " s");
}

// The view lists this pod with the incarnation that it had before it lost its file. That
// incarnation will never answer, and the members must hear of it even if this pod does not want to
// come back.
bool JoinRequest::Replaced() const {
  const MemberState& state = *parts_.state;
  return !state.in_view() && state.view().FindPod(state.uid()) >= 0;
}

// Asks for all living workers of this pod that have no rank and can be given the state, once all
// without a rank are ready. A worker that can't be given the state would train from the beginning
// beside others that are far ahead.
std::optional<Message> JoinRequest::RequestMessage() const {
  const MemberState& state = *parts_.state;
  Message message = parts_.outbox->MakeMessage(MessageKind::kJoin);
  message.candidate.pod = self_;
  if (Replaced()) return message;
  if (!parts_.workers->known() || parts_.drains->draining() || parts_.workers->ever_finishing()) {
    return std::nullopt;
  }
  for (const Worker& worker : parts_.workers->living()) {
    const bool ranked =
        state.in_view() && state.view().FindRank(state.uid(), worker.slot, worker.incarnation) >= 0;
    if (ranked) continue;
    if (!worker.ready) return std::nullopt;
    if (!worker.loads) continue;
    message.candidate.workers.push_back(worker);
  }
  if (message.candidate.workers.empty()) return std::nullopt;
  message.reason = state.in_view() ? Reason::kWorkerJoined : reason_;
  return message;
}

void JoinRequest::Check() {
  const MemberState& state = *parts_.state;
  const TimePoint now = parts_.outbox->now();
  if (!state.has_view() || (repeat_.at && !repeat_.Due(now))) return;
  if (now < rests_until_ && !state.in_view() && !Replaced()) {
    repeat_.at = rests_until_;
    return;
  }
  const std::optional<Message> message = RequestMessage();
  if (message && !state.is_coordinator() && Replaced()) {
    parts_.outbox->SendToMembers(*message);
    repeat_.Again(now, retry_);
    return;
  }
  if (message && state.is_coordinator() && state.voting()) {
    parts_.applicants->Add({message->candidate, message->reason});
    repeat_.at = now + retry_;
    return;
  }
  if (!message || state.is_coordinator()) {
    repeat_.Stop();
    return;
  }
  // Asks the coordinator; after two tries also one other pod each time, which answers with the view
  // that it knows.
  const View& view = state.view();
  parts_.outbox->SendTo(view.coordinator, *message);
  if (repeat_.times >= 2) {
    const Pod& other = view.pods[repeat_.times % view.pods.size()];
    if (other.uid != view.coordinator) parts_.outbox->SendTo(other.uid, *message);
  }
  repeat_.at = now + retry_;
  ++repeat_.times;
}

}  // namespace ringmaster::membership
