// Events on their way to the API server: written one by one by a thread of its own, so that nobody
// waits for them. Where they come faster than that, those that find the queue full are dropped:
// events are best effort.
//
// Thread rule: every method is safe from any thread. The destructor gives up what is not written:
// Flush before.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <thread>

#include "common/sync/mutex.h"

namespace ringmaster::runtime {

class EventQueue {
 public:
  using Write = std::function<void()>;

  // `dropped` is called for each event that finds no room; it may be null. `limit` 0: all are
  // dropped, and there is no thread.
  EventQueue(std::size_t limit, std::function<void()> dropped);
  ~EventQueue();

  void Add(Write write);
  // False: not all that was there is written within `timeout`.
  bool Flush(std::chrono::milliseconds timeout);

 private:
  void Run(std::stop_token stop);

  const std::size_t limit_;
  const std::function<void()> dropped_;
  sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::deque<Write> waiting_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;
  std::jthread thread_;
};

}  // namespace ringmaster::runtime
