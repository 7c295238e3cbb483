// How the lists and watches of one cache go: whether the first list has come, the last error, how
// often they failed, and log lines when they begin to fail and when that is over.
//
// Thread rule: Failed and Recovered from the informer's thread, the rest from any.
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
  // A list came, or a watch had news or lasted.
  void Recovered();
  // The cache holds a whole list.
  void SetSynced();
  // A list or watch begins.
  void SetTurn();

  // False if the first list has not succeeded within `timeout`.
  bool WaitForSync(std::chrono::milliseconds timeout);

  struct State {
    bool synced = false;
    std::string error;  // of the last list or watch; empty: it went well
    std::uint64_t failures = 0;
    std::chrono::steady_clock::time_point last_turn;
  };
  State state() const;

 private:
  const std::string resource_;
  // Informer's thread only.
  std::string logged_error_;
  std::chrono::steady_clock::time_point logged_at_;

  mutable sync::Mutex mu_;
  sync::CondVar synced_changed_;
  State state_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::runtime
