// The boundary between two steps: how many steps are complete, whether this rank's user stands at
// the end of one, and whether a planned change of the membership happens there.
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
  // The user stands in step_end: the step is confirmed by all and waits to be released.
  bool standing() const { return operation_ != nullptr; }

  // All ranks have ended the step. `operation` is null where the user has not asked for it (the
  // step was handed over to a rank that has just joined).
  void Reach(std::shared_ptr<Operation> operation) {
    ++step_;
    operation_ = std::move(operation);
    synced_ = false;
  }
  // The state that a joiner was given is that of the end of this step.
  void Restart(uint64_t step) { step_ = step; }

  // Joiners were given state at this boundary.
  void set_synced(bool synced) { synced_ = synced; }

  // A planned change happens at the next boundary of view `epoch`.
  void Arm(uint64_t epoch) { armed_epoch_ = std::max(armed_epoch_, epoch); }
  // True: it was armed and isn't any more.
  bool Disarm(uint64_t epoch) {
    if (armed_epoch_ != epoch) return false;
    armed_epoch_ = 0;
    return true;
  }
  bool armed(uint64_t epoch) const { return armed_epoch_ == epoch; }

  // Lets the user go on in a view of `size` ranks. False: nobody stands here.
  bool Release(uint64_t epoch, int size) {
    if (operation_ == nullptr) return false;
    operation_->step = {epoch, step_, size, synced_};
    std::exchange(operation_, nullptr)->Complete({});
    return true;
  }
  void Fail(const Status& why) {
    if (operation_ != nullptr) operation_->Complete(why);
    operation_ = nullptr;
  }

 private:
  uint64_t step_ = 0;
  uint64_t armed_epoch_ = 0;
  bool synced_ = false;
  std::shared_ptr<Operation> operation_;
};

}  // namespace ringmaster::engine
