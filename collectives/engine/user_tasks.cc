#include "collectives/engine/user_tasks.h"

#include <cxxabi.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace ringmaster::engine {
namespace {

// The engine's thread waits for the result, and with it the whole job. So nothing that the user's
// code throws may pass by, except for the end of the thread itself, which nobody may stop.
Status ResultOf(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return {RM_ERR_OUT_OF_MEMORY, "no memory to save or load the state"};
  } catch (const std::exception& error) {
    return {RM_ERR_INTERNAL, std::string("a callback for the state has thrown: ") + error.what()};
#ifdef __GLIBCXX__  // elsewhere it passes by what follows
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (...) {
    return {RM_ERR_INTERNAL, "a callback for the state has thrown something"};
  }
}

}  // namespace

class UserTasks::Serving {
 public:
  explicit Serving(UserTasks* tasks) : tasks_(tasks) {
    sync::MutexLock lock(&tasks_->mu_);
    ++tasks_->serving_;
  }
  ~Serving() {
    sync::MutexLock lock(&tasks_->mu_);
    --tasks_->serving_;
    tasks_->changed_.NotifyAll();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  UserTasks* const tasks_;
};

bool UserTasks::Run(uint64_t epoch, std::function<Status()> work, Clock::time_point deadline,
                    Status* result) {
  auto task = std::make_shared<Task>();
  task->work = std::move(work);
  sync::MutexLock lock(&mu_);
  if (epoch <= interrupted_) return false;
  waiting_ = task;
  changed_.NotifyAll();
  while (!task->done && epoch > interrupted_) {
    const bool abandoned = waiting_ == task && serving_ == 0;
    if (!abandoned) {
      changed_.Wait(&mu_);
    } else if (!changed_.WaitUntil(&mu_, deadline) && waiting_ == task && serving_ == 0) {
      task->result = {RM_ERR_TIMEOUT, "no thread of this worker waits in rm_enter or rm_step_end"};
      task->done = true;
    }
  }
  if (waiting_ == task) waiting_ = nullptr;
  if (!task->done) return false;
  *result = task->result;
  return true;
}

bool UserTasks::Serve(const std::function<bool()>& finished, Clock::time_point deadline) {
  const Serving serving(this);
  sync::MutexLock lock(&mu_);
  while (!finished()) {
    if (waiting_ != nullptr) {
      const auto task = std::exchange(waiting_, nullptr);
      lock.Unlock();
      Status result = ResultOf(task->work);
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
