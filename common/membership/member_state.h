// Which incarnation this member is, in which view, and what it has promised: the state that
// survives a restart.
//
// Every change that others may rely on is stored (an action `Persist`) before the change's
// consequences are added to the outbox. Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/membership/action.h"
#include "common/membership/clause.h"
#include "common/membership/outbox.h"
#include "common/membership/pod_index.h"
#include "common/membership/quorum.h"

namespace ringmaster::membership {

// What a member that resigns with this state has promised and accepted.
inline Resignation ResignationOf(const PersistentState& stored) {
  return {stored.promised, stored.accepted, stored.accepted_value};
}

class MemberState {
 public:
  MemberState(std::string uid, PersistentState stored, ClauseSet without, Outbox* outbox);

  const PersistentState& stored() const { return stored_; }
  const std::string& uid() const { return uid_; }
  bool has_view() const { return stored_.view != nullptr; }
  const View& view() const { return *stored_.view; }  // only if has_view()
  Epoch epoch() const { return EpochOf(stored_.view); }

  // As View::FindPod and View::FindMember of the current view, in a time that does not grow with
  // it.
  int FindPod(std::string_view uid) const { return index_.Find(uid); }
  int FindMember(std::string_view uid, std::uint64_t incarnation) const;

  // Index of this pod in the current view; -1: the view does not list it with this incarnation.
  int self() const { return self_; }
  bool in_view() const { return self_ >= 0; }
  bool is_coordinator() const { return self_ >= 0 && view().coordinator == uid_; }
  // In the current view and not resigned from it.
  bool voting() const;
  // Has promised a higher lineage than that of its view: takes no part in anything until a view of
  // that lineage comes (rule 9).
  bool frozen() const { return stored_.lineage > EpochLineage(epoch()); }
  // In the view, but it is over for this member: it has resigned, has accepted a successor, or has
  // ordered its workers to stop.
  bool leaving_view() const;

  void Promise(const Ballot& ballot);
  // `resigning`: the same write stores that this member resigns.
  void Accept(const Ballot& ballot, const ViewPtr& value, bool resigning);
  void Resign();
  void SetStopping();
  void SetPlanning();
  void SetRan();
  void PromiseLineage(std::uint64_t lineage);
  // Begins with a newer view: what was promised about the former one is void.
  void EnterView(const ViewPtr& next);

 private:
  void Store() { outbox_->Emit(Persist{stored_}); }

  // Constant after construction.
  std::string uid_;
  ClauseSet without_;
  Outbox* outbox_;

  PersistentState stored_;
  PodIndex index_;  // of stored_.view
  int self_ = -1;
};

}  // namespace ringmaster::membership
