// What a step's end tells the user's script: whether the view changed since the step before.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

#include "collectives/engine/operation.h"
#include "collectives/engine/view.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

class StepChanges {
 public:
  // The worker is in this view, and its first step counts changes from it.
  void Begin(const engine::Membership& membership) {
    sync::MutexLock lock(&mu_);
    epoch_ = membership.epoch;
    size_ = membership.size;
  }
  // A step has ended; `info` may be null.
  void Ended(const engine::StepResult& result, rm_step_info* info) {
    sync::MutexLock lock(&mu_);
    if (info != nullptr) {
      *info = {result.epoch,           result.step,        size_, result.size,
               result.epoch != epoch_, result.state_synced};
    }
    epoch_ = result.epoch;
    size_ = result.size;
  }

 private:
  sync::Mutex mu_;
  // Of the step before.
  uint64_t epoch_ GUARDED_BY(mu_) = 0;
  int size_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::elastic
