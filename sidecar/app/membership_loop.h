// Feeds this pod's membership machine with events, one after the other, and has its actions carried
// out in order.
//
// An action that leads to a new event (a stop that is answered at once) only queues it: all actions
// of an event are finished before the next event. Thread rule: the sidecar's loop only.
#pragma once

#include <deque>
#include <functional>

#include "common/membership/member.h"
#include "sidecar/app/agent_outputs.h"

namespace ringmaster::app {

struct MembershipHooks {
  std::function<SteadyTime()> now;
  PersistState persist;
  std::function<void(const membership::Action&)> run;  // every action but Persist
  std::function<void()> stepped;                       // the actions of an event are done
  std::function<void()> settled;                       // no event is left
};

class MembershipLoop {
 public:
  MembershipLoop(membership::Config config, membership::PersistentState state,
                 MembershipHooks hooks);

  void Feed(membership::Event event);
  const membership::Member& member() const { return member_; }
  Epoch epoch() const { return membership::EpochOf(member_.current()); }

  // The newest view that was handed to the workers; SetInstalled returns the one before.
  const ViewPtr& installed() const { return installed_; }
  ViewPtr SetInstalled(ViewPtr view) { return std::exchange(installed_, std::move(view)); }

  // Nothing is left to do here: no event counts any more.
  void End() { done_ = true; }
  bool done() const { return done_; }
  // 0 unless the state could not be stored, which ends the loop.
  int exit_code() const { return exit_code_; }

 private:
  void Run(const membership::Action& action);

  const MembershipHooks hooks_;
  membership::Member member_;
  ViewPtr installed_;
  std::deque<membership::Event> events_;  // fed while another is worked on
  bool working_ = false;
  bool done_ = false;
  int exit_code_ = 0;
};

}  // namespace ringmaster::app
