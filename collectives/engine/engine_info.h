// What the engine's thread lets other threads read.
//
// Thread rule: any thread reads; the engine's thread writes, but for ExpectMembership().
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "collectives/engine/rebuild_timer.h"
#include "collectives/engine/view.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

class EngineInfo {
 public:
  Membership membership() const {
    sync::MutexLock lock(&mu_);
    return membership_;
  }
  void SetMembership(const Membership& membership) {
    sync::MutexLock lock(&mu_);
    membership_ = membership;
  }
  // What a joiner answers before its first view.
  void ExpectMembership(const Membership& expected) {
    sync::MutexLock lock(&mu_);
    if (!entered) membership_ = expected;
  }
  RebuildTimes last_rebuild() const {
    sync::MutexLock lock(&mu_);
    return last_rebuild_;
  }
  void SetLastRebuild(RebuildTimes times) {
    sync::MutexLock lock(&mu_);
    last_rebuild_ = std::move(times);
  }

  std::atomic<bool> entered{false};  // is in a view, with state
  std::atomic<bool> busy{false};
  // Dropped by mistake: operations complete here alone until the step ends.
  std::atomic<bool> detached{false};
  std::atomic<uint64_t> step{0};
  std::atomic<uint64_t> ran_epoch{0};

 private:
  mutable sync::Mutex mu_;
  Membership membership_ GUARDED_BY(mu_);
  RebuildTimes last_rebuild_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::engine
