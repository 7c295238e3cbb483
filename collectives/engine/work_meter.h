// Measures where this worker's time goes (job::WorkerTimes says what each figure means).
//
// The worker waits for the others between the moment at which an operation is asked for and the
// moment at which it runs. Operations run one after the other, so at each moment the worker is
// idle, waiting or running.
//
// Thread rule: any thread; the caller gives the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/job/worker_times.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

class WorkMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // The worker is in a view, so its time counts from now on. Only the first call counts.
  void Begin(Clock::time_point now);
  // Something has been asked for.
  void Asked(Clock::time_point now);
  // An operation begins to run.
  void Runs(Clock::time_point now);
  // The operation has ended; its tensors had `bytes` bytes. `more`: other operations have been
  // asked for and wait.
  void Ran(Clock::time_point now, uint64_t bytes, bool more);
  // No operation waits or runs any more.
  void Clear(Clock::time_point now);
  // A thread of the script begins to wait in a call, or has ended its wait. Several threads may
  // wait at the same time.
  void Blocks(Clock::time_point now);
  void Unblocks(Clock::time_point now);

  job::WorkerTimes At(Clock::time_point now) const;

 private:
  enum class Now { kIdle, kWaiting, kRunning };

  // Adds the time since the last change to the state that lasted until now, and goes on to `next`.
  void Change(Now next, Clock::time_point now) REQUIRES(mu_);

  mutable sync::Mutex mu_;
  std::optional<Clock::time_point> began_ GUARDED_BY(mu_);
  Now state_ GUARDED_BY(mu_) = Now::kIdle;
  Clock::time_point changed_ GUARDED_BY(mu_);
  int blocked_threads_ GUARDED_BY(mu_) = 0;
  Clock::time_point blocked_since_ GUARDED_BY(mu_);  // while blocked_threads_ > 0
  Clock::duration blocked_ GUARDED_BY(mu_){0};
  Clock::duration waiting_ GUARDED_BY(mu_){0};
  Clock::duration running_ GUARDED_BY(mu_){0};
  uint64_t bytes_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::engine
