// Waits, up to a limit, for something that has to be asked whether it has ended.
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

  // The limit runs from here. `over` says that nobody waits any more (the view was stopped); empty:
  // that can't happen.
  Patience(std::chrono::milliseconds limit, Over over)
      : limit_(limit), deadline_(Clock::now() + limit), over_(std::move(over)) {}

  // Asks `ended` until it returns a status, and returns that. RM_ERR_EPOCH_MOVED: `over` said so
  // first; RM_ERR_TIMEOUT: the limit has passed. The message names `what`.
  Status Await(const std::string& what, const std::function<std::optional<Status>()>& ended) const;

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point deadline_;
  Over over_;
};

}  // namespace ringmaster::nccl
