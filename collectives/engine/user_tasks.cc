#include "collectives/engine/user_tasks.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {

bool UserTasks::Run(uint64_t epoch, std::function<Status()> work, Status* result) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  std::unique_lock lock(mu_);
  if (epoch <= interrupted_) return false;
  waiting_ = task;
  changed_.notify_all();
  changed_.wait(lock, [&] { return task->done || epoch <= interrupted_; });
  if (waiting_ == task) waiting_ = nullptr;
  if (!task->done) return false;
  *result = task->result;
  return true;
}

bool UserTasks::Serve(const std::function<bool()>& finished, Clock::time_point deadline) {
  std::unique_lock lock(mu_);
  while (!finished()) {
    if (waiting_ != nullptr) {
      const auto task = std::exchange(waiting_, nullptr);
      lock.unlock();
      Status result = task->work();
      lock.lock();
      task->result = std::move(result);
      task->done = true;
      changed_.notify_all();
      continue;
    }
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && !finished() &&
        waiting_ == nullptr) {
      return false;
    }
  }
  return true;
}

void UserTasks::Notify() {
  std::lock_guard lock(mu_);
  changed_.notify_all();
}

void UserTasks::Interrupt(uint64_t epoch) {
  std::lock_guard lock(mu_);
  interrupted_ = std::max(interrupted_, epoch);
  changed_.notify_all();
}

}  // namespace ringmaster::engine
