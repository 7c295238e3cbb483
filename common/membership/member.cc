#include "common/membership/member.h"

#include <utility>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {

Member::Member(Config config, PersistentState state)
    : impl_(std::make_unique<MemberImpl>(config, std::move(state))) {}
Member::~Member() = default;
Member::Member(Member&&) noexcept = default;
Member& Member::operator=(Member&&) noexcept = default;

std::vector<Action> Member::Step(const Event& event, TimePoint now) {
  std::vector<Action> actions;
  impl_->Step(event, now, &actions);
  return actions;
}
void Member::Step(const Event& event, TimePoint now, std::vector<Action>* out) {
  impl_->Step(event, now, out);
}
std::optional<TimePoint> Member::NextDeadline() const { return impl_->NextDeadline(); }

Role Member::role() const {
  if (impl_->drains().left()) return Role::kLeft;
  if (!impl_->state().has_view()) return Role::kWaiting;
  if (!impl_->state().in_view()) return Role::kJoining;
  return state().resigned ? Role::kResigned : Role::kMember;
}
const ViewPtr& Member::current() const { return state().view; }
bool Member::is_coordinator() const { return impl_->state().is_coordinator(); }
bool Member::changing() const { return impl_->succession().changing(); }
bool Member::done() const { return impl_->Done(); }
bool Member::draining() const { return impl_->drains().draining(); }
bool Member::admits() const { return impl_->Admits(); }
bool Member::state_lost() const { return impl_->StateLost(); }
bool Member::able() const { return impl_->succession().able(); }
bool Member::finishing() const { return impl_->Ending(); }
std::uint32_t Member::min_pods() const { return impl_->min_pods(); }
const PersistentState& Member::state() const { return impl_->state().stored(); }
MemberCounters Member::counters() const { return impl_->succession().counters(); }

}  // namespace ringmaster::membership
