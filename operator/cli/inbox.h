// Where other threads leave work for the loop thread, so that one thread owns all state.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace ringmaster::cli {

class Inbox {
 public:
  void Post(std::function<void()> work) {
    {
      std::lock_guard lock(mu_);
      work_.push_back(std::move(work));
    }
    posted_.notify_one();
  }

  // Waits until there is work or `until`, then does all there is, on the calling thread.
  void RunUntil(std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mu_);
    posted_.wait_until(lock, until, [this] { return !work_.empty(); });
    std::deque<std::function<void()>> work = std::exchange(work_, {});
    lock.unlock();
    for (auto& one : work) one();
  }

 private:
  std::mutex mu_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> work_;  // guarded by mu_
};

}  // namespace ringmaster::cli
