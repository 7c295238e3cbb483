// Lends the engine a user's thread that waits in step_end or enter. The state callbacks must run
// there and not on the engine's thread, because they take the interpreter's lock and touch what the
// user's thread owns.
//
// Thread rule: Run() from the engine's thread; Serve() from user threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::engine {

class UserTasks {
 public:
  using Clock = std::chrono::steady_clock;

  // Hands `work` to a thread that is in Serve(), and waits until it is done. *result: what it has
  // returned; if it has thrown, RM_ERR_OUT_OF_MEMORY or RM_ERR_INTERNAL; if no thread was in
  // Serve() until the deadline, RM_ERR_TIMEOUT, and it will not run. False: an Interrupt() for this
  // epoch or a newer one came first; `work` may then still be running, so it must own what it uses.
  bool Run(uint64_t epoch, std::function<Status()> work, Clock::time_point deadline,
           Status* result);
  // Runs tasks on the calling thread until `finished` returns true; it is called with the lock
  // held, at least after each Notify(). False: the deadline has passed.
  bool Serve(const std::function<bool()>& finished, Clock::time_point deadline);
  // Wakes the threads in Serve(), so that they ask `finished` again.
  void Notify();
  // Ends every Run() for epochs up to this one, now and later.
  void Interrupt(uint64_t epoch);

 private:
  // Counts the threads in Serve().
  class Serving;
  struct Task {
    std::function<Status()> work;
    bool done = false;
    Status result;
  };

  sync::Mutex mu_;
  sync::CondVar changed_;
  std::shared_ptr<Task> waiting_ GUARDED_BY(mu_);  // null: no task waits for a thread
  int serving_ GUARDED_BY(mu_) = 0;                // threads in Serve()
  uint64_t interrupted_ GUARDED_BY(mu_) = 0;       // views up to this epoch
};

}  // namespace ringmaster::engine
