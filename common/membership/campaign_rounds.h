// The rounds of this member's ballots: each new round is above all that it has heard of. Counts its
// rounds and those that were refused.
//
// Owned by Proposer; used by the member's thread only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/membership/message.h"

namespace ringmaster::membership {

class CampaignRounds {
 public:
  // `promised`: the round that this member has promised in the new view.
  void EnterView(std::int64_t promised) { highest_ = std::max<std::int64_t>(0, promised); }
  void Observe(const Message& message) {
    highest_ = std::max({highest_, message.ballot.round, message.promised.round});
  }
  // Only round 0 has been heard of in this view.
  bool untouched() const { return highest_ == 0; }
  // Begins a round above all others.
  std::int64_t Next(std::int64_t promised) {
    ++campaigns_;
    highest_ = std::max(highest_, promised) + 1;
    return highest_;
  }
  void CountRefusal() { ++refused_; }

  // Over all views: how many rounds above 0 this member began, and how many of its ballots were
  // refused for a higher one.
  std::uint32_t campaigns() const { return campaigns_; }
  std::uint32_t refused() const { return refused_; }

 private:
  std::int64_t highest_ = 0;
  std::uint32_t campaigns_ = 0;
  std::uint32_t refused_ = 0;
};

}  // namespace ringmaster::membership
