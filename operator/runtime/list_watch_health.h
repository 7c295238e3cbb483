// The health of one cache's lists and watches: whether the first list has come, the last error, and
// the number of failures. It logs when they begin to fail and when they recover.
//
// Thread rule: call Failed and Recovered from the informer's thread, the rest from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

class ListWatchHealth {
 public:
  // `resource`: for the log.
  explicit ListWatchHealth(std::string resource) : resource_(std::move(resource)) {}

  void Failed(const kube::Error& error);
  // A list succeeded, or a watch had an event or lasted.
  void Recovered();
  // The cache holds a complete list.
  void SetSynced();
  // A list or a watch begins.
  void SetTurn();

  // Returns false if the first list has not succeeded within `timeout`.
  bool WaitForSync(std::chrono::milliseconds timeout);

  struct State {
    bool synced = false;
    std::string error;  // of the last list or watch; empty if it succeeded
    std::uint64_t failures = 0;
    std::chrono::steady_clock::time_point last_turn;
  };
  State state() const;

 private:
  const std::string resource_;
  // Used by the informer's thread only.
  std::string logged_error_;
  std::chrono::steady_clock::time_point logged_at_;

  mutable sync::Mutex mu_;
  sync::CondVar synced_changed_;
  State state_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::runtime
