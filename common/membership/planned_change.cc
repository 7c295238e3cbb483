#include "common/membership/planned_change.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {

PlannedChange::PlannedChange(const Parts& parts, const Timers& timers, ClauseSet without)
    : parts_(parts), retry_(timers.retry), without_(without) {
  EnterView();
}

void PlannedChange::EnterView() {
  number_ = number_heard_ = 0;
  at_boundary_.assign(parts_.state->has_view() ? parts_.state->view().pods.size() : 0, false);
  repeat_.Stop();
}

// Returns a number that no earlier plan has had, and never 0.
std::uint64_t PlannedChange::NewNumber() const {
  return static_cast<std::uint64_t>(parts_.outbox->now().time_since_epoch().count()) + 1;
}

void PlannedChange::Resume() {
  if (parts_.state->is_coordinator() && parts_.state->stored().planning) number_ = NewNumber();
}

// That there is a plan is stored before any worker is armed: a coordinator that restarts must not
// leave the workers at the boundary.
void PlannedChange::Start(std::uint64_t number) {
  number_ = number;
  parts_.state->SetPlanning();
}

bool PlannedChange::OnPlan(const Message& message) {
  if (parts_.state->stored().resigned || parts_.workers->stop_sent()) return false;
  number_heard_ = std::max(number_heard_, message.number);
  parts_.workers->Arm();
  return at_boundary_[parts_.state->self()];
}

void PlannedChange::OnBoundary(const Message& message, int from) {
  if (!parts_.state->is_coordinator()) return;
  at_boundary_[from] = true;
  // A coordinator that restarted has forgotten its plan; the pods at the boundary have not.
  if (message.number != 0 && number_ == 0) {
    Start(message.number);
    SendPlan();
  }
}

bool PlannedChange::SetOwnBoundary() {
  const int self = parts_.state->self();
  if (self < 0 || at_boundary_[self]) return false;
  at_boundary_[self] = true;
  return true;
}

bool PlannedChange::AllAtBoundary() const {
  return std::find(at_boundary_.begin(), at_boundary_.end(), false) == at_boundary_.end();
}

bool PlannedChange::Advance(bool may, bool wanted) {
  if (!may) {
    repeat_.Stop();  // `number_` stays: if the fault was a wrong suspicion, the plan goes on
    return false;
  }
  if (number_ == 0) {
    if (!wanted) return false;
    Start(NewNumber());
  }
  const bool all = AllAtBoundary();
  if (!all && (!repeat_.at || repeat_.Due(parts_.outbox->now()))) SendPlan();
  if (!all && !without_.Has(Clause::kBoundaryFirst)) return false;
  repeat_.Stop();
  return true;
}

void PlannedChange::SendPlan() {
  number_heard_ = std::max(number_heard_, number_);
  parts_.workers->Arm();
  Message message = parts_.outbox->MakeMessage(MessageKind::kPlan);
  message.number = number_;
  const View& view = parts_.state->view();
  for (std::size_t i = 0; i < at_boundary_.size(); ++i) {
    if (!at_boundary_[i]) parts_.outbox->SendTo(view.pods[i].uid, message);
  }
  repeat_.Again(parts_.outbox->now(), retry_);
}

}  // namespace ringmaster::membership
