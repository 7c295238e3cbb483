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

#include "common/membership/applicants.h"
#include "common/membership/departure.h"
#include "common/membership/join_request.h"
#include "common/membership/lineage_promise.h"
#include "common/membership/local_workers.h"
#include "common/membership/member.h"
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
  const Departure& departure() const { return departure_; }
  bool Done() const;
  bool Able() const;
  bool Ending() const { return state_.in_view() && workers_.finishing(); }
  bool StateLost() const;
  std::uint32_t min_pods() const { return successor_.min_pods(); }

 private:
  void Handle(const Event& event);
  void HandleMessage(const Message& message, const std::string& address);
  void HandleForView(const Message& message, int from);
  void HandleSuspect(const Message& message, int from);
  void HandleRecord(const Message& message);
  // True: what follows from the facts has to be done.
  bool HandleHeard(const PodHeard& event);

  // Goes over to a decided view if it is newer than all seen.
  void Learn(const ViewPtr& next);
  // `newly`: not just again after a restart.
  void EnterView(bool newly);

  void Settle();
  void SettleView();
  void CheckWorkers();
  void CheckDrain();
  void CheckDecision();
  void Resign();

  const ClauseSet without_;
  Outbox outbox_;
  MemberState state_;
  PeerStatus peers_;
  RankStatus ranks_;
  LocalWorkers workers_;
  Departure departure_;
  Applicants applicants_;
  PlannedChange plan_;
  SuccessorFromFacts successor_;
  Succession succession_;
  JoinRequest join_;
  LineagePromise lineage_;
  RecordCopy record_;
  StatusReport report_;
};

}  // namespace ringmaster::membership
