// Events on their way to the API server. A thread of its own writes them one by one, so that no
// caller waits for a write. When the queue is full, further events are dropped: events are best
// effort.
//
// Thread rule: every method is safe from any thread. The destructor discards events that are not
// written yet: call Flush before.
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

  // `dropped` is called for each event that finds the queue full; it may be null. With `limit` 0
  // all events are dropped, and there is no thread.
  EventQueue(std::size_t limit, std::function<void()> dropped);
  ~EventQueue();

  void Add(Write write);
  // Returns false if the events that were waiting are not all written within `timeout`.
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
