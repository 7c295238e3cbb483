// Whether a view is dead, and why. It dies once, for the first reason that is given, and every
// sleep in it then ends.
//
// Owned by LivenessMonitor. Thread rule: SleepOn() from the thread of the collective, the rest from
// any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "collectives/transport/arena.h"
#include "collectives/transport/unique_fd.h"
#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::transport {

class ViewDeath {
 public:
  ViewDeath();

  // Ends the view. False: it was dead already, and its reason stays.
  bool Die(const std::string& why);
  bool dead() const { return dead_.load(std::memory_order_acquire); }
  // OK while the view lives, then RM_ERR_EPOCH_MOVED with the reason.
  Status status() const;
  // A descriptor that is readable once the view is dead, for poll().
  int event() const { return event_.get(); }

  // Sleeps until the flag has reached `count` or the view is dead. `check` is called before each
  // sleep, which is short; its first error ends the wait.
  Status SleepOn(Flag* flag, uint64_t tag, uint64_t count, const std::function<Status()>& check);

 private:
  UniqueFd event_;
  std::atomic<bool> dead_{false};
  std::atomic<Flag*> sleeping_on_{nullptr};
  mutable sync::Mutex mu_;
  Status status_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::transport
