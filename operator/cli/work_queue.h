// Work that other threads leave for the loop thread, so that one thread owns all state.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <utility>

#include "common/sync/mutex.h"

namespace ringmaster::cli {

class WorkQueue {
 public:
  void Post(std::function<void()> work) {
    {
      const sync::MutexLock lock(&mu_);
      work_.push_back(std::move(work));
    }
    posted_.NotifyOne();
  }

  // Waits for work until `until`, then does all of it on the calling thread.
  void RunUntil(std::chrono::steady_clock::time_point until) {
    sync::MutexLock lock(&mu_);
    while (work_.empty() && posted_.WaitUntil(&mu_, until)) {
    }
    std::deque<std::function<void()>> work = std::exchange(work_, {});
    lock.Unlock();
    for (auto& one : work) one();
  }

 private:
  sync::Mutex mu_;
  sync::CondVar posted_;
  std::deque<std::function<void()>> work_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::cli
