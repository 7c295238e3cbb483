// What other threads ask of a loop that sleeps in poll(): tasks, and a descriptor that is readable
// while there are any.
//
// Thread rule: safe from any thread; Take and Close from the loop.
#pragma once

#include <deque>
#include <functional>

#include "common/sync/mutex.h"

namespace ringmaster::kubelet {

class TaskQueue {
 public:
  using Task = std::function<void()>;

  TaskQueue();
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;

  // Whether it was taken: after Close nothing is any more.
  bool Post(Task task);
  // All tasks so far; the descriptor is no longer readable.
  std::deque<Task> Take();
  // Nobody would run a task any more. False, and still open: some were posted meanwhile.
  bool Close();
  int fd() const { return fd_; }

 private:
  const int fd_;
  sync::Mutex mu_;
  std::deque<Task> tasks_ GUARDED_BY(mu_);
  bool open_ GUARDED_BY(mu_) = true;
};

}  // namespace ringmaster::kubelet
