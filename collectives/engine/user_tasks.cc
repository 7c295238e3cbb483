#include "collectives/engine/user_tasks.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {

bool UserTasks::Run(uint64_t epoch, std::function<Status()> work, Status* result) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  sync::MutexLock lock(&mu_);
  if (epoch <= interrupted_) return false;
  waiting_ = task;
  changed_.NotifyAll();
  while (!task->done && epoch > interrupted_) changed_.Wait(&mu_);
  if (waiting_ == task) waiting_ = nullptr;
  if (!task->done) return false;
  *result = task->result;
  return true;
}

bool UserTasks::Serve(const std::function<bool()>& finished, Clock::time_point deadline) {
  sync::MutexLock lock(&mu_);
  while (!finished()) {
    if (waiting_ != nullptr) {
      const auto task = std::exchange(waiting_, nullptr);
      lock.Unlock();
      Status result = task->work();
      lock.Lock();
      task->result = std::move(result);
      task->done = true;
      changed_.NotifyAll();
      continue;
    }
    if (!changed_.WaitUntil(&mu_, deadline) && !finished() && waiting_ == nullptr) return false;
  }
  return true;
}

void UserTasks::Notify() {
  sync::MutexLock lock(&mu_);
  changed_.NotifyAll();
}

void UserTasks::Interrupt(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  interrupted_ = std::max(interrupted_, epoch);
  changed_.NotifyAll();
}

}  // namespace ringmaster::engine
