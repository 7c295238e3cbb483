// Feeds this pod's membership machine with events, one after the other, and has its actions carried
// out in order.
//
// An action that leads to a new event (a stop that is answered at once) only queues it: all actions
// of an event are finished before the next event. What is to be stored is stored before anything
// that comes after it happens. Where it can't be (the disk is full) everything waits and each event
// tries again; a sidecar that gave up at once would be missed by its workers, and the kubelet
// starts it again later and later. Thread rule: the sidecar's loop only.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>

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
  // Short of the workers' fence; long for others, whose next view may need this pod's word.
  static constexpr std::chrono::seconds kStorePatience{4};

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
  // For the state to be stored.
  bool waits() const { return waits_since_.has_value(); }
  // 0 unless the state could not be stored for kStorePatience, which ends the loop.
  int exit_code() const { return exit_code_; }

 private:
  bool RunActions();
  bool Run(const membership::Action& action);
  bool Store(const membership::PersistentState& state);

  const MembershipHooks hooks_;
  membership::Member member_;
  ViewPtr installed_;
  std::deque<membership::Event> events_;    // fed while another is worked on
  std::deque<membership::Action> actions_;  // of the event that is worked on
  bool stepping_ = false;                   // an event's actions are not all done
  std::optional<SteadyTime> waits_since_;
  bool working_ = false;
  bool done_ = false;
  int exit_code_ = 0;
};

}  // namespace ringmaster::app
