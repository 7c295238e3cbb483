// What a step's end tells the user's script: whether the view changed since the step before.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

#include "collectives/engine/operation.h"
#include "collectives/engine/worker_view.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

class StepChanges {
 public:
  // A step begins with these ranks and counts changes from them: the worker's first, or the first
  // after all ranks have joined.
  void Begin(const engine::StepRanks& ranks) {
    sync::MutexLock lock(&mu_);
    epoch_ = ranks.epoch;
    size_ = static_cast<int>(ranks.workers.size());
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
  // As of the end of the step before.
  uint64_t epoch_ GUARDED_BY(mu_) = 0;
  int size_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::elastic
