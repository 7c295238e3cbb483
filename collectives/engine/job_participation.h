// How this worker takes part in the job: whether it has the job's state, was let in, or was
// dropped.
//
// Owner: the engine's loop. Thread rule: the engine's thread only; what other threads may read is
// copied to EngineInfo.
#pragma once

#include <cstdint>

#include "collectives/engine/engine_info.h"
#include "collectives/engine/worker_view.h"

namespace ringmaster::engine {

class JobParticipation {
 public:
  JobParticipation(bool has_state, EngineInfo* info) : has_state_(has_state), info_(info) {}

  // False: this worker takes part, contributes nothing, and needs the job's state.
  bool has_state() const { return has_state_; }
  // This worker is in a view, with state.
  bool entered() const { return info_->entered; }

  // A view that lists this worker has come. A worker that was neither let in nor dropped has the
  // job's state in two cases. In the first view of a job, or of a job that begins again, every
  // worker's state is the one that it began with, even if its sidecar called it a joiner of the
  // view that died. And where that first view was replaced before this worker heard of it, the
  // successor says so (WorkerView::holds).
  void ListIn(const WorkerView& view) {
    if (!info_->entered && !info_->dropped && (view.reason == "Bootstrap" || view.holds))
      has_state_ = true;
    if (has_state_) info_->held_epoch = view.epoch;
  }
  // This worker has loaded the job's state, in the view of this epoch.
  void GetState(uint64_t epoch) {
    has_state_ = true;
    info_->held_epoch = epoch;
  }
  // All ranks of the view stand at the same point, and this worker with them.
  void TakeBack() { info_->dropped = false; }
  // The call of the user that waits to be let in may return.
  void Enter() { info_->entered = true; }
  // The others go on without this worker. False: it had not been let in and still waits for that,
  // so there is nothing that it takes part in.
  bool Drop() {
    has_state_ = false;
    info_->held_epoch = 0;
    if (!info_->entered) return false;
    // In this order: to a thread of the script, a worker that is neither would be a joiner, whose
    // call asks to be let in instead of failing.
    info_->dropped = true;
    info_->entered = false;
    return true;
  }

 private:
  bool has_state_;
  EngineInfo* const info_;
};

}  // namespace ringmaster::engine
