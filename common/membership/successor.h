// The successor of the current view that follows from what this member knows. It keeps no facts of
// its own except the numbers of pods that may train.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>
#include <utility>
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
#include "common/membership/sizes.h"

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
  SuccessorFromFacts(const Parts& parts, Sizes sizes, ClauseSet without)
      : parts_(parts), sizes_(std::move(sizes)), without_(without) {}

  void SetSizes(Sizes sizes) { sizes_ = std::move(sizes); }
  std::uint32_t min_pods() const { return sizes_.least; }

  ViewPtr Successor(bool without_self) const override;
  // True: pods leave or join, or `train` changes, so a planned change should begin.
  bool ChangeWanted() const;

 private:
  bool Holds(Clause clause) const { return !without_.Has(clause); }
  // `accused`: pods to drop because of accusations.
  Change KnownChange(bool without_self, const std::vector<int>& accused) const;
  std::vector<int> AccusedOfSilence() const;
  // Whether a planned change would let somebody in.
  bool AdmitsSomebody() const;
  ViewPtr AfterFault(Change change, const std::vector<int>& accused) const;
  ViewPtr AtBoundary(Change change) const;

  // Constant after construction.
  Parts parts_;

  Sizes sizes_;
  ClauseSet without_;
};

}  // namespace ringmaster::membership
