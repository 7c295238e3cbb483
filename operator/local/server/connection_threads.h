// A thread for each open connection of the embedded server, as watches need: they hold one for
// minutes.
//
// Thread rule: enqueue from the accepting thread, shutdown once.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"

namespace ringmaster::local {

class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(size_t most) : most_(most) {}

  // The number of the connection that this thread serves, counted in the order in which they were
  // accepted. The threads themselves may run in any order.
  static std::uint64_t Arrival() { return running_; }

  void enqueue(std::function<void()> task) override {
    const sync::MutexLock lock(&mu_);
    tasks_.push_back({++accepted_, std::move(task)});
    if (idle_ < tasks_.size() && threads_.size() < most_) {
      threads_.emplace_back([this] { Work(); });
    } else {
      wanted_.NotifyOne();
    }
  }

  void shutdown() override {
    std::vector<std::thread> ending;
    {
      const sync::MutexLock lock(&mu_);
      closed_ = true;
      wanted_.NotifyAll();
      ending.swap(threads_);
    }
    for (std::thread& thread : ending) thread.join();
  }

 private:
  struct Task {
    std::uint64_t number;
    std::function<void()> serve;
  };

  void Work() {
    sync::MutexLock lock(&mu_);
    while (true) {
      ++idle_;
      while (!closed_ && tasks_.empty()) wanted_.Wait(&mu_);
      --idle_;
      if (tasks_.empty()) return;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      running_ = task.number;
      task.serve();
      lock.Lock();
    }
  }

  const size_t most_;
  sync::Mutex mu_;
  sync::CondVar wanted_;
  std::deque<Task> tasks_ GUARDED_BY(mu_);
  std::uint64_t accepted_ GUARDED_BY(mu_) = 0;
  size_t idle_ GUARDED_BY(mu_) = 0;
  bool closed_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mu_);
  static inline thread_local std::uint64_t running_ = 0;
};

}  // namespace ringmaster::local
