#include "common/membership/member_state.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {
namespace {

int PlaceIn(const View& view, const std::string& uid, std::uint64_t incarnation,
            ClauseSet without) {
  return without.Has(Clause::kIncarnationMatches) ? view.FindPod(uid)
                                                  : view.FindMember(uid, incarnation);
}

}  // namespace

MemberState::MemberState(std::string uid, PersistentState stored, ClauseSet without, Outbox* outbox)
    : uid_(std::move(uid)), without_(without), outbox_(outbox), stored_(std::move(stored)) {
  index_.Set(stored_.view.get());
  if (stored_.view) self_ = PlaceIn(*stored_.view, uid_, stored_.incarnation, without_);
  outbox_->SetView(stored_.view);
}

int MemberState::FindMember(std::string_view uid, std::uint64_t incarnation) const {
  const int i = index_.Find(uid);
  return i >= 0 && view().pods[static_cast<std::size_t>(i)].incarnation == incarnation ? i : -1;
}

bool MemberState::voting() const {
  return self_ >= 0 && (!stored_.resigned || without_.Has(Clause::kResignedSilent));
}

bool MemberState::leaving_view() const {
  return self_ >= 0 && (stored_.resigned || stored_.stopping || stored_.accepted_value);
}

void MemberState::Promise(const Ballot& ballot) {
  stored_.promised = ballot;
  if (!without_.Has(Clause::kStoreBeforeAnswer)) Store();
}

void MemberState::Accept(const Ballot& ballot, const ViewPtr& value, bool resigning) {
  stored_.promised = std::max(stored_.promised, ballot);
  stored_.accepted = ballot;
  stored_.accepted_value = value;
  stored_.resigned = stored_.resigned || resigning;
  if (!without_.Has(Clause::kStoreBeforeAnswer)) Store();
}

void MemberState::Resign() {
  stored_.resigned = true;
  Store();
}

void MemberState::SetStopping() {
  if (stored_.stopping) return;
  stored_.stopping = true;
  Store();
}

void MemberState::SetPlanning() {
  stored_.planning = true;
  Store();
}

void MemberState::SetRan() {
  if (stored_.ran) return;
  stored_.ran = true;
  Store();
}

void MemberState::PromiseLineage(std::uint64_t lineage) {
  stored_.lineage = lineage;
  Store();
}

void MemberState::EnterView(const ViewPtr& next) {
  const std::uint64_t incarnation = stored_.incarnation;
  const std::uint64_t lineage = stored_.lineage;
  stored_ = {};
  stored_.incarnation = incarnation;
  stored_.lineage = lineage;
  stored_.view = next;
  index_.Set(next.get());
  self_ = PlaceIn(*next, uid_, incarnation, without_);
  outbox_->SetView(next);
  Store();
}

}  // namespace ringmaster::membership
