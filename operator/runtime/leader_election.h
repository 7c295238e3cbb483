// Which replica leads, as far as one of them can tell from what it has seen of a Lease: the
// decisions, no clock and no API. The loop around it is LeaderElector.
//
// No clocks of different machines are compared: a lease is over when it has not changed for its
// duration since WE saw it change, by our own clock.
//
// Plain values; not safe from several threads.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

struct ElectionOptions {
  std::string identity;                              // of this replica: no other may ever use it
  std::chrono::milliseconds lease_duration{15'000};  // whole seconds: the API has no others
  std::chrono::milliseconds renew_deadline{10'000};  // less than lease_duration
  std::chrono::milliseconds retry_period{2'000};     // less than renew_deadline
};

// The part of a coordination.k8s.io/v1 Lease that counts.
struct LeaseFacts {
  std::string holder;  // empty: nobody's
  int duration_seconds = 0;
  std::string acquired;  // texts as they stand there: only their changes are looked at
  std::string renewed;
  int transitions = 0;
  std::string resource_version;
  friend bool operator==(const LeaseFacts&, const LeaseFacts&) = default;
};
LeaseFacts ReadLease(const kube::Json& lease);
// A whole object for Create (empty resource_version) or Update.
kube::Json WriteLease(const LeaseFacts& facts, const std::string& ns, const std::string& name);

class Election {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Step {
    kLook,    // read the lease first
    kCreate,  // there is none
    kTake,    // it is free, or its holder has let it run out
    kRenew,   // we lead
    kWait,    // somebody else leads
  };

  explicit Election(ElectionOptions options) : options_(std::move(options)) {}

  // A read at `now`; nullopt: there is no lease.
  void Saw(const std::optional<LeaseFacts>& lease, Clock::time_point now);
  // The API server took what Claim gave. `asked`: when the call began, which is the latest moment
  // from which others may count.
  void Wrote(const LeaseFacts& lease, Clock::time_point asked);
  // A write was refused or had no answer: what the lease is now is not known.
  void Lost() { known_ = false; }

  Step Next(Clock::time_point now) const;
  // What to write for kCreate, kTake and kRenew; `wall` for people's eyes.
  LeaseFacts Claim(const std::string& wall) const;
  // What to write to let another lead at once.
  LeaseFacts Release(const std::string& wall) const;

  bool leading() const { return leading_; }
  // While leading: when we must have stopped unless another renewal succeeds.
  Clock::time_point deadline() const { return renewed_ + options_.renew_deadline; }
  const std::string& holder() const { return lease_ ? lease_->holder : nobody_; }

 private:
  const ElectionOptions options_;
  const std::string nobody_;
  bool known_ = false;               // lease_ is our last read or write
  std::optional<LeaseFacts> lease_;  // nullopt: there is none
  Clock::time_point changed_;        // when we first saw it as it is
  bool leading_ = false;
  Clock::time_point renewed_;
};

}  // namespace ringmaster::runtime
