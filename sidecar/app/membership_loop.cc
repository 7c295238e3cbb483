#include "sidecar/app/membership_loop.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <variant>

namespace ringmaster::app {

MembershipLoop::MembershipLoop(membership::Config config, membership::PersistentState state,
                               MembershipHooks hooks)
    : hooks_(std::move(hooks)), member_(std::move(config), std::move(state)) {}

void MembershipLoop::Feed(membership::Event event) {
  if (done_) return;
  events_.push_back(std::move(event));
  if (working_) return;
  working_ = true;
  while (!events_.empty() && !done_) {
    const membership::Event next = std::move(events_.front());
    events_.pop_front();
    for (const membership::Action& action : member_.Step(next, hooks_.now())) {
      if (done_) break;  // not stored: nothing that comes after may happen
      Run(action);
    }
    hooks_.stepped();
  }
  working_ = false;
  hooks_.settled();
}

void MembershipLoop::Run(const membership::Action& action) {
  const auto* persist = std::get_if<membership::Persist>(&action);
  if (persist == nullptr) return hooks_.run(action);
  if (auto stored = hooks_.persist(persist->state); !stored) {
    spdlog::error("giving up error=\"{}\"", stored.error());
    exit_code_ = 1;
    done_ = true;
  }
}

}  // namespace ringmaster::app
