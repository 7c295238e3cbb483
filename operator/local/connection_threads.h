// A thread for each open connection of the embedded server, as watches need: they hold one for
// minutes.
//
// Thread rule: enqueue from the accepting thread, shutdown once.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace ringmaster::local {

class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    std::lock_guard lock(mu_);
    tasks_.push_back(std::move(task));
    if (idle_ < tasks_.size() && threads_.size() < most_) {
      threads_.emplace_back([this] { Work(); });
    } else {
      wanted_.notify_one();
    }
  }

  void shutdown() override {
    {
      std::lock_guard lock(mu_);
      closed_ = true;
      wanted_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void Work() {
    std::unique_lock lock(mu_);
    while (true) {
      ++idle_;
      wanted_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  const size_t most_;
  std::mutex mu_;
  // Guarded by mu_; threads_ only grows before shutdown.
  std::condition_variable wanted_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_ = 0;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ringmaster::local
