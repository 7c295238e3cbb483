#include "operator/kubelet/task_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace ringmaster::kubelet {

TaskQueue::TaskQueue() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

TaskQueue::~TaskQueue() {
  if (fd_ >= 0) close(fd_);
}

bool TaskQueue::Post(Task task) {
  const sync::MutexLock lock(&mu_);
  if (!open_) return false;
  tasks_.push_back(std::move(task));
  const uint64_t one = 1;
  (void)!write(fd_, &one, sizeof one);
  return true;
}

std::deque<TaskQueue::Task> TaskQueue::Take() {
  const sync::MutexLock lock(&mu_);
  uint64_t count;
  (void)!read(fd_, &count, sizeof count);
  return std::exchange(tasks_, {});
}

bool TaskQueue::Close() {
  const sync::MutexLock lock(&mu_);
  if (tasks_.empty()) open_ = false;
  return !open_;
}

}  // namespace ringmaster::kubelet
