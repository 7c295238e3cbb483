// The boundary between two steps: how many steps are complete, whether this rank stands at the end
// of one, and whether a planned change of the membership happens there.
//
// Thread rule: the engine's thread only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "collectives/engine/operation.h"

namespace ringmaster::engine {

class StepBoundary {
 public:
  uint64_t step() const { return step_; }
  // All ranks have ended the step, and the next one has not begun here. A user that is in step_end
  // waits for it.
  bool standing() const { return standing_; }

  // All ranks have ended the step. `operation` is null if the user of this rank has not called
  // step_end: the rank has no more data (Kind::kJoin), so it ends steps without a call.
  void Reach(std::shared_ptr<Operation> operation) {
    ++step_;
    standing_ = true;
    operation_ = std::move(operation);
    synced_ = false;
  }
  // This worker was given the state of the end of step number `step`.
  void Restart(uint64_t step) { step_ = step; }

  // Joiners were given state at this boundary.
  void set_synced(bool synced) { synced_ = synced; }

  // A planned change happens at the next boundary of view `epoch`.
  void Arm(uint64_t epoch) { armed_epoch_ = std::max(armed_epoch_, epoch); }
  // The planned change is called off. False: none was planned in this view.
  bool Disarm(uint64_t epoch) {
    if (armed_epoch_ != epoch) return false;
    armed_epoch_ = 0;
    return true;
  }
  bool armed(uint64_t epoch) const { return armed_epoch_ == epoch; }

  // Begins the next step, in view `epoch` of `size` ranks. False: no user waits for it.
  bool Release(uint64_t epoch, int size) {
    standing_ = false;
    if (operation_ == nullptr) return false;
    operation_->step = {epoch, step_, size, synced_};
    std::exchange(operation_, nullptr)->Complete({});
    return true;
  }
  // The user's step_end, if there is one, returns `why`.
  void Fail(const Status& why) {
    if (operation_ != nullptr) operation_->Complete(why);
    operation_ = nullptr;
    standing_ = false;
  }

 private:
  uint64_t step_ = 0;
  uint64_t armed_epoch_ = 0;
  bool synced_ = false;
  bool standing_ = false;
  std::shared_ptr<Operation> operation_;
};

}  // namespace ringmaster::engine
