// One attempt of this member to decide the successor of its view, and the timer before the next.
//
// Plain values; used by Proposer and CampaignTurn.
#pragma once

#include <cstdint>
#include <optional>

#include "common/membership/ballot.h"
#include "common/membership/config.h"
#include "common/membership/quorum.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

struct Campaign {
  enum class Phase : std::uint8_t {
    kIdle,
    kPreparing,  // collects promises
    kStopping,   // has a quorum of promises or needs none; waits for the local workers to stop
    kProposing,  // collects acceptances
  };

  Phase phase = Phase::kIdle;
  Ballot ballot;
  VoterSet promises;
  Ballot adopted;  // the highest ballot reported as accepted: its value must be proposed
  ViewPtr value;   // to propose; null: not chosen yet

  bool asking() const { return phase == Phase::kPreparing || phase == Phase::kProposing; }
  void Adopt(const Ballot& accepted, const ViewPtr& accepted_value) {
    if (!accepted_value || !(adopted < accepted)) return;
    adopted = accepted;
    value = accepted_value;
  }
};

// When the next campaign begins. Each member waits a little longer than the member before it in the
// order, plus a random time, so that two seldom compete.
class CampaignTimer {
 public:
  // `step`: the wait for each place in the order.
  CampaignTimer(Duration step, std::uint64_t seed) : step_(step), random_(seed * 2 + 1) {}

  const std::optional<TimePoint>& at() const { return at_; }
  void Stop() { at_.reset(); }
  void Start(TimePoint now, int position) { at_ = now + Wait(position); }
  // Makes the timer end now.
  void Expire(TimePoint now) { at_ = now; }
  // Makes a running timer end no later than one that is started now.
  void Shorten(TimePoint now, int position);

 private:
  Duration Wait(int position);
  // Xorshift: `random_` must not be 0, so the constructor makes it odd.
  std::uint64_t Random();

  Duration step_;
  std::uint64_t random_;
  std::optional<TimePoint> at_;
};

}  // namespace ringmaster::membership
