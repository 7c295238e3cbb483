// The inside of Member. Private to this folder.
//
// MemberImpl owns the parts (member.h lists them) and routes events to them. Every event changes
// some facts; then Settle() looks at all facts and does what follows from them. Settle() is
// idempotent, so an event that repeats does no harm. No part knows MemberImpl: each gets the few
// other parts that it reads or drives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/membership/action.h"
#include "common/membership/clause.h"
#include "common/membership/config.h"
#include "common/membership/event.h"
#include "common/membership/joins_and_leaves.h"
#include "common/membership/lineage_promise.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/peer_status.h"
#include "common/membership/planned_change.h"
#include "common/membership/rank_status.h"
#include "common/membership/record_copy.h"
#include "common/membership/status_report.h"
#include "common/membership/succession.h"
#include "common/membership/successor.h"

namespace ringmaster::membership {

class MemberImpl {
 public:
  MemberImpl(const Config& config, PersistentState stored);

  void Step(const Event& event, TimePoint now, std::vector<Action>* out);
  std::optional<TimePoint> NextDeadline() const;

  const MemberState& state() const { return state_; }
  const Succession& succession() const { return succession_; }
  const Drains& drains() const { return moves_.drains(); }
  bool Done() const;
  bool Ending() const { return state_.in_view() && workers_.finishing(); }
  bool StateLost() const;
  bool Admits() const;
  std::uint32_t min_pods() const { return successor_.min_pods(); }

 private:
  void Handle(const Event& event);
  void HandleMessage(const Message& message, const std::string& address);
  // Handles a message about the current view from its pod `from` (an index).
  void HandleForView(const Message& message, int from);
  // True: a fact has changed, so Settle() must run.
  bool HandleHeard(const PodHeard& event);

  // Goes over to a decided view if it is newer than all that this member has seen.
  void Learn(const ViewPtr& next);
  // Does what a member does at the start of a view. `newly` is false after a restart of the sidecar
  // in a view that it was in before.
  void EnterView(bool newly);

  void Settle();
  void SettleView();
  void CheckOwnPod();
  void CheckDecision();

  const ClauseSet without_;
  Outbox outbox_;
  MemberState state_;
  PeerStatus peers_;
  RankStatus ranks_;
  LocalWorkers workers_;
  JoinsAndLeaves moves_;
  PlannedChange plan_;
  SuccessorFromFacts successor_;
  Succession succession_;
  LineagePromise lineage_;
  RecordCopy record_;
  StatusReport report_;
};

}  // namespace ringmaster::membership
