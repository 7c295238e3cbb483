// Waits, with a limit, for something that says only when it is asked whether it has ended.
//
// Thread rule: a value; over() is called on the waiting thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "ringmaster/status.h"

namespace ringmaster::nccl {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  using Over = std::function<bool()>;

  // `over`: nobody waits for it any more (the view was stopped); empty: that can't be.
  Patience(std::chrono::milliseconds limit, Over over)
      : limit_(limit), deadline_(Clock::now() + limit), over_(std::move(over)) {}

  // Asks `ended` until it says how it ended. RM_ERR_EPOCH_MOVED: it is over; RM_ERR_TIMEOUT: the
  // limit has passed, and `what` is said to be not done.
  Status Await(const std::string& what, const std::function<std::optional<Status>()>& ended) const;

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point deadline_;
  Over over_;
};

}  // namespace ringmaster::nccl
