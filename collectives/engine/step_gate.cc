#include "collectives/engine/step_gate.h"

#include <utility>

namespace ringmaster::engine {

void StepGate::Obey(const std::map<uint64_t, bool>& armed) {
  for (const auto& [epoch, is_armed] : armed) {
    const bool runs = epoch == connection_->view().epoch && connection_->active();
    if (is_armed) {
      boundary_.Arm(epoch);
      // A worker that stands there already says so again, because its first message may be lost.
      if (runs && waits()) Tell();
    } else if (boundary_.Disarm(epoch)) {
      // If this rank stands at the boundary all ranks do, so each may go on by itself.
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

void StepGate::Open(bool begun) {
  if (waits() && !begun) Rename();
  if (boundary_.Release(ranks_.epoch, static_cast<int>(ranks_.workers.size()))) users_->Notify();
}

void StepGate::Rename() {
  ranks_ = {connection_->view().epoch, connection_->view().workers};
  info_->SetStepRanks(ranks_);
}

void StepGate::Adopt(StepRanks ranks) {
  ranks_ = std::move(ranks);
  info_->SetStepRanks(ranks_);
}

void StepGate::Fail(const Status& why) {
  boundary_.Fail(why);
  users_->Notify();
}

}  // namespace ringmaster::engine
