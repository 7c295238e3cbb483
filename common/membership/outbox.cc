#include "common/membership/outbox.h"

namespace ringmaster::membership {
namespace {

constexpr std::size_t kMostPods = 20'000;  // twice the largest job that is meant to work

}  // namespace

void Outbox::Begin(TimePoint now, std::vector<Action>* actions) {
  now_ = now;
  actions_ = actions;
}

void Outbox::SetView(ViewPtr view) {
  if (view_) {
    for (const Pod& pod : view_->pods) RememberAddress(pod.uid, pod.address);
  }
  view_ = std::move(view);
}

void Outbox::RememberAddress(const std::string& pod, const std::string& address) {
  // Bounds the map: a job that runs for months has had many pods. A pod whose address is forgotten
  // here asks again.
  if (addresses_.size() >= kMostPods && addresses_.count(pod) == 0) addresses_.clear();
  addresses_[pod] = address;
}

Message Outbox::MakeMessage(MessageKind kind) const {
  Message message;
  message.kind = kind;
  message.from = uid_;
  message.incarnation = incarnation_;
  message.view = EpochOf(view_);
  return message;
}

Message Outbox::MakeViewMessage() const {
  Message message = MakeMessage(MessageKind::kDecided);
  message.value = view_;
  return message;
}

void Outbox::SendTo(const std::string& to, Message message) {
  if (to == uid_) return;
  Emit(Send{to, AddressOf(to), std::move(message)});
}

void Outbox::SendTo(const Pod& to, Message message) {
  if (to.uid != uid_) Emit(Send{to.uid, to.address, std::move(message)});
}

void Outbox::SendToMembers(const Message& message) {
  for (const Pod& pod : view_->pods) SendTo(pod, message);
}

bool Outbox::SendLimited(const std::string& to, Message message) {
  if (answered_.size() >= kMostPods) answered_.clear();
  TimePoint& answered = answered_[to];
  if (answered != TimePoint{} && now_ - answered < retry_) return false;
  answered = now_;
  SendTo(to, std::move(message));
  return true;
}

const std::string& Outbox::AddressOf(const std::string& pod) const {
  static const std::string kUnknown;
  if (view_) {
    if (int i = view_->FindPod(pod); i >= 0) return view_->pods[i].address;
  }
  auto known = addresses_.find(pod);
  return known == addresses_.end() ? kUnknown : known->second;
}

}  // namespace ringmaster::membership
