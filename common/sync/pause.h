// Sleeping on a thread that may be asked to stop.
#pragma once

#include <chrono>
#include <stop_token>

#include "common/sync/mutex.h"

namespace ringmaster::sync {

// Sleeps for `duration`, or until the thread is asked to stop.
template <class Rep, class Period>
void Pause(const std::stop_token& stop, const std::chrono::duration<Rep, Period>& duration) {
  const auto end = std::chrono::steady_clock::now() + duration;
  Mutex mu;
  StoppableCondVar never;
  const MutexLock lock(&mu);
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < end) {
    (void)never.WaitUntil(&mu, stop, end);
  }
}

}  // namespace ringmaster::sync
