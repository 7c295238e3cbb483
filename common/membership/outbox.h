// Collects the actions of one step of a member, and signs and addresses its messages.
//
// Owned by MemberImpl; the other parts add to it in the order in which things have to happen. Used
// by the thread of the member only.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/membership/action.h"
#include "common/membership/config.h"

namespace ringmaster::membership {

class Outbox {
 public:
  // `retry`: the least time between two answers to a pod that is behind.
  Outbox(std::string uid, std::uint64_t incarnation, Duration retry)
      : uid_(std::move(uid)), incarnation_(incarnation), retry_(retry) {}

  // Begins a step: its actions are appended to `actions`, which must outlive the step.
  void Begin(TimePoint now, std::vector<Action>* actions);
  TimePoint now() const { return now_; }
  std::size_t size() const { return actions_->size(); }

  // The view that messages are about from now on. The addresses of the former view stay known.
  void SetView(ViewPtr view);
  void RememberAddress(const std::string& pod, const std::string& address);

  void Emit(Action action) { actions_->push_back(std::move(action)); }
  void EmitLog(std::string text) { Emit(Log{std::move(text)}); }

  // A message from this member about its current view.
  Message MakeMessage(MessageKind kind) const;
  // kDecided with the current view.
  Message MakeViewMessage() const;
  // Nothing is sent to this pod itself.
  void SendTo(const std::string& to, Message message);
  void SendTo(const Pod& to, Message message);
  void SendToMembers(const Message& message);
  // Answers a pod that is behind or ahead, which may send a lot. False: nothing was sent, because
  // the last answer to it is less than `retry` ago.
  bool SendLimited(const std::string& to, Message message);

 private:
  const std::string& AddressOf(const std::string& pod) const;

  // Constant after construction.
  std::string uid_;
  std::uint64_t incarnation_;
  Duration retry_;

  TimePoint now_{};
  std::vector<Action>* actions_ = nullptr;
  ViewPtr view_;
  std::map<std::string, std::string> addresses_;  // of pods outside the current view
  std::map<std::string, TimePoint> answered_;     // last answer of SendLimited to each pod
};

}  // namespace ringmaster::membership
