// The newest health of this process's GPU: the monitor sets it, and who sends it asks what is new.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/job/gpu_health.h"
#include "common/sync/mutex.h"

namespace ringmaster::gpu_health {

class LatestHealth {
 public:
  void Set(const job::GpuHealth& health) {
    sync::MutexLock lock(&mu_);
    if (version_ != 0 && health == health_) return;
    health_ = health;
    ++version_;
    if (wake_ != nullptr) wake_();
  }
  // From now on `wake` is called when there is news, under the lock: it may only wake a thread.
  // Null: nobody is woken, and when this returns, nobody is being woken.
  void SetWake(std::function<void()> wake) {
    sync::MutexLock lock(&mu_);
    wake_ = std::move(wake);
  }
  // No value: nothing has changed since the version that the caller knows, 0 at first.
  std::optional<job::GpuHealth> News(std::uint64_t* known) const {
    sync::MutexLock lock(&mu_);
    if (*known == version_) return std::nullopt;
    *known = version_;
    return health_;
  }

 private:
  mutable sync::Mutex mu_;
  job::GpuHealth health_ GUARDED_BY(mu_);
  std::uint64_t version_ GUARDED_BY(mu_) = 0;
  std::function<void()> wake_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::gpu_health
