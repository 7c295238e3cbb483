#include "sidecar/app/membership_loop.h"

#include <utility>
#include <variant>

#include "common/logging/log.h"

namespace ringmaster::app {

MembershipLoop::MembershipLoop(membership::Config config, membership::PersistentState state,
                               MembershipHooks hooks)
    : hooks_(std::move(hooks)), member_(std::move(config), std::move(state)) {}

void MembershipLoop::Feed(membership::Event event) {
  if (done_) return;
  if (!waits() || !std::holds_alternative<membership::Tick>(event))
    events_.push_back(std::move(event));
  if (working_) return;
  working_ = true;
  while (RunActions() && !events_.empty() && !done_) {
    const membership::Event next = std::move(events_.front());
    events_.pop_front();
    for (membership::Action& action : member_.Step(next, hooks_.now()))
      actions_.push_back(std::move(action));
    stepping_ = true;
  }
  working_ = false;
  if (!waits()) hooks_.settled();
}

// False: the rest has to wait.
bool MembershipLoop::RunActions() {
  while (!actions_.empty() && !done_) {
    if (!Run(actions_.front())) return false;
    actions_.pop_front();
  }
  if (std::exchange(stepping_, false)) hooks_.stepped();
  return true;
}

bool MembershipLoop::Run(const membership::Action& action) {
  const auto* persist = std::get_if<membership::Persist>(&action);
  if (persist != nullptr) return Store(persist->state);
  hooks_.run(action);
  return true;
}

bool MembershipLoop::Store(const membership::PersistentState& state) {
  const auto stored = hooks_.persist(state);
  if (stored) {
    waits_since_.reset();
    return true;
  }
  const SteadyTime now = hooks_.now();
  if (!waits()) {
    waits_since_ = now;
    logging::Warn("nothing happens until the state can be stored error=\"{}\"", stored.error());
  }
  if (now - *waits_since_ < kStorePatience) return false;
  logging::Error("giving up error=\"{}\"", stored.error());
  exit_code_ = 1;
  done_ = true;
  return false;
}

}  // namespace ringmaster::app
