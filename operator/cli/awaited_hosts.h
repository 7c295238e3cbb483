// What a run with changing hosts waits for at its start: an address by which the hosts reach this
// machine, and enough slots for the job.
//
// Thread rule: any thread. Every wait ends after `patience`, counted from the construction, or at
// the stop.
#pragma once

#include <chrono>
#include <map>
#include <stop_token>
#include <string>

#include "common/sync/mutex.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

class AwaitedHosts {
 public:
  // `np` is the number of slots that the job needs to start.
  AwaitedHosts(int np, std::chrono::seconds patience)
      : np_(np), patience_(patience), deadline_(std::chrono::steady_clock::now() + patience) {}

  void SetAddress(const std::string& address);
  std::string address() const;
  // The first call of the script has failed, so all waits end.
  void SetFirstError(const std::string& error);
  // `troubles` has, by host, why it offers no slots.
  void SetSlots(int slots, std::map<std::string, std::string> troubles);

  Outcome<std::string> AwaitAddress(const std::stop_token& stop);
  // Returns the number of slots.
  Outcome<int> AwaitSlots(const std::stop_token& stop);

 private:
  std::string WhyFew() const REQUIRES(mu_);

  const int np_;
  const std::chrono::seconds patience_;
  const std::chrono::steady_clock::time_point deadline_;
  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::string address_ GUARDED_BY(mu_), first_error_ GUARDED_BY(mu_);
  int slots_ GUARDED_BY(mu_) = 0;
  std::map<std::string, std::string> troubles_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::cli
