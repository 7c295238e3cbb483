#include "common/membership/join_request.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {
namespace {

constexpr int kLongestRest = 5;  // doublings
// After so many of its longest rests without another a pod's links count as mended.
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

// The view counts on what this pod was before it lost its file. It will never answer as that, and
// must make it known even if it does not want to come back.
bool JoinRequest::Replaced() const {
  const MemberState& state = *parts_.state;
  return !state.in_view() && state.view().FindPod(state.uid()) >= 0;
}

// All living workers of this pod that have no rank and can be given the state, once all are ready.
// The others would train from the beginning beside those that are far ahead.
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
  // The coordinator first; after two tries any other pod too, which answers with what it knows.
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
