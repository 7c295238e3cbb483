#include "collectives/engine/step_gate.h"

#include <utility>

namespace ringmaster::engine {

void StepGate::Obey(const std::map<uint64_t, bool>& armed) {
  for (const auto& [epoch, is_armed] : armed) {
    const bool runs = epoch == connection_->view().epoch && connection_->active();
    if (is_armed) {
      boundary_.Arm(epoch);
      // A worker that stands there already says so again: its first word may have been lost.
      if (runs && user_waits()) Tell();
    } else if (boundary_.Disarm(epoch)) {
      // All stand at the boundary, so each may go on by itself.
      if (runs && connection_->view().train) Open();
    }
  }
}

void StepGate::Reach(std::shared_ptr<Operation> operation) {
  boundary_.Reach(std::move(operation));
  info_->step = step();
}

void StepGate::Restart(uint64_t step) {
  boundary_.Restart(step);
  info_->step = step;
}

void StepGate::Open() {
  const View& view = connection_->view();
  if (boundary_.Release(view.epoch, view.size())) users_->Notify();
}

void StepGate::Fail(const Status& why) {
  boundary_.Fail(why);
  users_->Notify();
}

}  // namespace ringmaster::engine
