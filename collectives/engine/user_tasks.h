// Lends the engine a user's thread that waits in step_end or enter: state callbacks must run there,
// not on the engine's (they take the interpreter's lock, and touch what the user's thread owns).
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

  // Hands `work` to the thread that serves and waits for it. False: Interrupt() of this epoch or a
  // newer one came first; `work` may then still be running, so it must own what it uses.
  bool Run(uint64_t epoch, std::function<Status()> work, Status* result);
  // Runs tasks until `finished` is true (checked after each Notify()) or the deadline has passed
  // (false).
  bool Serve(const std::function<bool()>& finished, Clock::time_point deadline);
  // Wakes those that serve, to look at `finished`.
  void Notify();
  // Ends every Run() for epochs up to this one, now and later.
  void Interrupt(uint64_t epoch);

 private:
  struct Task {
    std::function<Status()> work;
    bool done = false;
    Status result;
  };

  sync::Mutex mu_;
  sync::CondVar changed_;
  std::shared_ptr<Task> waiting_ GUARDED_BY(mu_);
  uint64_t interrupted_ GUARDED_BY(mu_) = 0;  // views up to this epoch
};

}  // namespace ringmaster::engine
