#include "common/membership/local_workers.h"

#include <algorithm>

namespace ringmaster::membership {

LocalWorkers::LocalWorkers(MemberState* state, Outbox* outbox) : state_(state), outbox_(outbox) {
  EnterView();
}

void LocalWorkers::EnterView() {
  stop_sent_ = armed_ = false;
  stopped_ = all_dead_ = state_->in_view() && state_->stored().resigned;
}

bool LocalWorkers::Update(const std::vector<Worker>& living) {
  const bool news = !known_ || living_ != living;
  known_ = true;
  living_ = living;
  return news;
}

bool LocalWorkers::Alive(std::uint32_t slot, std::uint64_t incarnation) const {
  return std::any_of(living_.begin(), living_.end(), [&](const Worker& worker) {
    return worker.slot == slot && worker.incarnation == incarnation;
  });
}

bool LocalWorkers::Holds(std::uint32_t slot, std::uint64_t incarnation, Epoch epoch) const {
  return std::any_of(living_.begin(), living_.end(), [&](const Worker& worker) {
    return worker.slot == slot && worker.incarnation == incarnation && worker.holds == epoch;
  });
}

void LocalWorkers::StopView() {
  if (stop_sent_ || stopped_) return;
  stop_sent_ = true;
  state_->SetStopping();
  outbox_->Emit(StopWorkers{state_->epoch()});
}

void LocalWorkers::SetStopped(Epoch epoch) {
  if (state_->has_view() && epoch >= state_->epoch()) stopped_ = true;
  stopped_epoch_ = std::max(stopped_epoch_, epoch);
}

void LocalWorkers::StopAllBelow(Epoch epoch) {
  if (stop_all_epoch_ >= epoch) return;
  stop_all_epoch_ = epoch;
  if (state_->in_view() && !stop_sent_ && !stopped_) {
    stop_sent_ = true;
    state_->SetStopping();
  }
  outbox_->Emit(StopWorkers{epoch});
}

void LocalWorkers::Arm() {
  if (armed_) return;
  armed_ = true;
  outbox_->Emit(ArmWorkers{state_->epoch()});
}

bool LocalWorkers::SetFinishing(Epoch epoch) {
  if (finishing_ >= epoch) return false;
  finishing_ = epoch;
  return true;
}

}  // namespace ringmaster::membership
