// Decides which replica leads, from what one replica has seen of a Lease; it has no clock and makes
// no API calls. LeaderElector is the loop around it.
//
// Clocks of different machines are never compared: a lease has expired when it has not changed for
// its duration, counted by our own clock from the moment when we saw the last change.
//
// Plain values; not safe from several threads.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

struct ElectionOptions {
  std::string identity;  // the name of this replica, which no other may ever use
  std::chrono::milliseconds lease_duration{15'000};  // in whole seconds, as in the API
  std::chrono::milliseconds renew_deadline{10'000};  // less than lease_duration
  std::chrono::milliseconds retry_period{2'000};     // less than renew_deadline
};

// The fields of a coordination.k8s.io/v1 Lease that are used.
struct LeaseFacts {
  std::string holder;  // empty: the lease is free
  int duration_seconds = 0;
  std::string acquired;  // times as text: only their changes are looked at
  std::string renewed;
  int transitions = 0;
  std::string resource_version;
  friend bool operator==(const LeaseFacts&, const LeaseFacts&) = default;
};
LeaseFacts ReadLease(const kube::Json& lease);
// Returns a whole object, for Create (resource_version empty) or Update.
kube::Json WriteLease(const LeaseFacts& facts, const std::string& ns, const std::string& name);

class Election {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Step {
    kLook,    // read the lease first
    kCreate,  // there is no lease
    kTake,    // the lease is free, or has expired
    kRenew,   // we lead
    kWait,    // another replica leads
  };

  explicit Election(ElectionOptions options) : options_(std::move(options)) {}

  // The lease was read at `now`; nullopt if there is none.
  void Saw(const std::optional<LeaseFacts>& lease, Clock::time_point now);
  // The API server accepted the lease from Claim. `asked` is when the call began: others count from
  // a later moment.
  void Wrote(const LeaseFacts& lease, Clock::time_point asked);
  // A write was refused or not answered, so the state of the lease is unknown.
  void Lost() { known_ = false; }

  Step Next(Clock::time_point now) const;
  // The lease to write for kCreate, kTake and kRenew; `wall` is for people.
  LeaseFacts Claim(const std::string& wall) const;
  // The lease to write so that another replica may lead at once.
  LeaseFacts Release(const std::string& wall) const;

  bool leading() const { return leading_; }
  // While leading: the time when we must have stopped unless another renewal succeeds.
  Clock::time_point deadline() const { return renewed_ + options_.renew_deadline; }
  const std::string& holder() const { return lease_ ? lease_->holder : nobody_; }

 private:
  const ElectionOptions options_;
  const std::string nobody_;
  bool known_ = false;               // lease_ is what we last read or wrote
  std::optional<LeaseFacts> lease_;  // nullopt: there is no lease
  Clock::time_point changed_;        // when we first saw the present lease_
  bool leading_ = false;
  Clock::time_point renewed_;
};

}  // namespace ringmaster::runtime
