// A thread for each open connection of the embedded server, as watches need: they hold one for
// minutes.
//
// Thread rule: enqueue from the accepting thread, shutdown once.
#pragma once

#include <httplib.h>

#include <deque>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"

namespace ringmaster::local {

class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    const sync::MutexLock lock(&mu_);
    tasks_.push_back(std::move(task));
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
  void Work() {
    sync::MutexLock lock(&mu_);
    while (true) {
      ++idle_;
      while (!closed_ && tasks_.empty()) wanted_.Wait(&mu_);
      --idle_;
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.Unlock();
      task();
      lock.Lock();
    }
  }

  const size_t most_;
  sync::Mutex mu_;
  sync::CondVar wanted_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mu_);
  size_t idle_ GUARDED_BY(mu_) = 0;
  bool closed_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::local
