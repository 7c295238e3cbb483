// The successor of the current view that follows from what this member knows. It keeps no facts of
// its own except the least number of pods.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "common/membership/applicants.h"
#include "common/membership/clause.h"
#include "common/membership/drains.h"
#include "common/membership/member_state.h"
#include "common/membership/next_view.h"
#include "common/membership/peer_status.h"
#include "common/membership/planned_change.h"
#include "common/membership/proposer.h"
#include "common/membership/rank_status.h"

namespace ringmaster::membership {

class SuccessorFromFacts final : public SuccessorSource {
 public:
  struct Parts {
    const MemberState* state;
    const PeerStatus* peers;
    const RankStatus* ranks;
    const Drains* drains;
    const Applicants* applicants;
    const PlannedChange* plan;
  };
  SuccessorFromFacts(const Parts& parts, std::uint32_t min_pods, ClauseSet without)
      : parts_(parts), min_pods_(min_pods), without_(without) {}

  void SetMinPods(std::uint32_t pods) { min_pods_ = pods; }
  std::uint32_t min_pods() const { return min_pods_; }

  ViewPtr Successor(bool without_self) const override;
  // True: pods leave or join, or `train` changes, so a planned change should begin.
  bool ChangeWanted() const;

 private:
  bool Holds(Clause clause) const { return !without_.Has(clause); }
  // `accused`: pods to drop because of accusations.
  Change KnownChange(bool without_self, const std::vector<int>& accused) const;
  std::vector<int> AccusedOfSilence() const;
  ViewPtr AfterFault(Change change, const std::vector<int>& accused) const;
  ViewPtr AtBoundary(Change change) const;

  // Constant after construction.
  Parts parts_;

  std::uint32_t min_pods_;
  ClauseSet without_;
};

}  // namespace ringmaster::membership
