// Says whether the view in which a backend works is over. Whatever waits for NCCL or for the device
// asks it.
//
// Owner: NcclBackend. Thread rule: Abort() from any thread, the rest from the engine's.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/nccl/patience.h"

namespace ringmaster::nccl {

class ViewEnd {
 public:
  ViewEnd() = default;
  ViewEnd(const ViewEnd&) = delete;
  ViewEnd& operator=(const ViewEnd&) = delete;

  // The backend works in the view of this epoch.
  void Install(uint64_t epoch) { epoch_ = epoch; }
  // Views up to this one are over. A later call with an earlier epoch changes nothing.
  void Abort(uint64_t epoch) {
    uint64_t before = aborted_;
    while (before < epoch && !aborted_.compare_exchange_weak(before, epoch)) {
    }
  }
  bool over() const { return aborted_ >= epoch_; }
  // over() as a function, for a wait. It must not outlive this object.
  Patience::Over Asker() const {
    return [this] { return over(); };
  }

 private:
  uint64_t epoch_ = 0;
  std::atomic<uint64_t> aborted_{0};
};

}  // namespace ringmaster::nccl
