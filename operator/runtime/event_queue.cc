#include "operator/runtime/event_queue.h"

#include <utility>

namespace ringmaster::runtime {

EventQueue::EventQueue(std::size_t limit, std::function<void()> dropped)
    : limit_(limit), dropped_(std::move(dropped)) {
  if (limit_ > 0) thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

EventQueue::~EventQueue() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void EventQueue::Add(Write write) {
  {
    const sync::MutexLock lock(&mu_);
    if (waiting_.size() < limit_) {
      waiting_.push_back(std::move(write));
      changed_.NotifyAll();
      return;
    }
  }
  if (dropped_) dropped_();
}

bool EventQueue::Flush(std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const sync::MutexLock lock(&mu_);
  while (!waiting_.empty() || writing_) {
    if (std::chrono::steady_clock::now() >= end) return false;
    (void)changed_.WaitUntil(&mu_, thread_.get_stop_token(), end);
  }
  return true;
}

void EventQueue::Run(std::stop_token stop) {
  for (;;) {
    Write write;
    {
      const sync::MutexLock lock(&mu_);
      writing_ = false;
      changed_.NotifyAll();
      while (waiting_.empty() && !stop.stop_requested()) changed_.Wait(&mu_, stop);
      if (stop.stop_requested()) return;
      write = std::move(waiting_.front());
      waiting_.pop_front();
      writing_ = true;
    }
    write();
  }
}

}  // namespace ringmaster::runtime
