// Planned change: arm the workers, wait for the boundary, then propose (rule 12).
#include <algorithm>

#include "common/membership/member_impl.h"

namespace ringmaster::membership {

void MemberImpl::Arm() {
  if (armed_) return;
  armed_ = true;
  Emit(ArmWorkers{view().epoch});
}

// Never 0.
std::uint64_t MemberImpl::PlanNumber() const {
  return static_cast<std::uint64_t>(now_.time_since_epoch().count()) + 1;
}

// Stored before anybody is armed: a coordinator that restarts must not leave them at the boundary.
void MemberImpl::StartPlan(std::uint64_t number) {
  plan_ = number;
  state_.planning = true;
  Store();
}

void MemberImpl::OnPlan(const Message& message) {
  if (state_.resigned || stop_sent_) return;
  plan_seen_ = std::max(plan_seen_, message.number);
  Arm();
  if (boundary_) report_repeat_.Stop();  // said again, the coordinator has not heard it
}

void MemberImpl::OnBoundary(const Message& message, int from) {
  if (!IsCoordinator()) return;
  facts_[from].boundary = true;
  // A coordinator that restarted has forgotten its plan; those who stand at the boundary have not.
  if (message.number != 0 && plan_ == 0) {
    StartPlan(message.number);
    SendPlan();
  }
}

bool MemberImpl::AllAtBoundary() const {
  return std::all_of(facts_.begin(), facts_.end(), [](const Facts& f) { return f.boundary; });
}

std::vector<std::string> MemberImpl::LeavingPods() const {
  std::vector<std::string> leaving;
  for (const std::string& pod : draining_) {
    if (view().FindPod(pod) >= 0) leaving.push_back(pod);
  }
  return leaving;
}

bool MemberImpl::PlanWanted() const {
  std::size_t leaving = LeavingPods().size();
  if (leaving > 0 && leaving < view().pods.size()) return true;
  std::size_t size = view().pods.size();
  if (view().train != (size >= config_.min_pods)) return true;
  std::size_t newcomers = 0;
  bool any = false;
  for (const Joiner& joiner : Admissible()) {
    any = true;
    if (view().FindPod(joiner.candidate.pod.uid) < 0) ++newcomers;
  }
  if (!any) return false;
  bool complete = expected_pods_ == 0 || size + newcomers >= expected_pods_;
  bool waited = applied_since_ && now_ - *applied_since_ >= config_.timers.join_batch;
  return complete || waited;
}

void MemberImpl::CheckPlan() {
  if (!IsCoordinator() || !Voting() || finishing_ >= view().epoch || Fault() ||
      campaign_.phase != Phase::kIdle) {
    plan_repeat_.Stop();  // a fault cancels the plan; a suspicion that ends revives it
    return;
  }
  bool wanted = PlanWanted();
  if (plan_ == 0) {
    if (!wanted) return;
    StartPlan(PlanNumber());
  }
  if (!AllAtBoundary() && (!plan_repeat_.at || Due(plan_repeat_))) SendPlan();
  if (AllAtBoundary() || !Holds(Clause::kBoundaryFirst)) {
    plan_repeat_.Stop();
    Begin();
  }
}

void MemberImpl::SendPlan() {
  plan_seen_ = std::max(plan_seen_, plan_);
  Arm();
  Message message = Make(MessageKind::kPlan);
  message.number = plan_;
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    if (!facts_[i].boundary) SendTo(view().pods[i].uid, message);
  }
  Again(&plan_repeat_, config_.timers.retry);
}

// The deadline of a drain: the boundary did not come in time, so the workers stop and the pod
// resigns before it is killed.
void MemberImpl::CheckDrain() {
  if (!drain_deadline_ || !Draining() || state_.resigned || finishing_ >= view().epoch) return;
  if (!expired_ && *drain_deadline_ <= now_) {
    expired_ = true;
    Say("the drain deadline has passed: stops in the middle of a step");
  }
  if (!expired_) return;
  EnsureStopped();
  if (!stopped_) return;
  all_dead_ = true;
  CheckPending();
  ResignSelf();
}

}  // namespace ringmaster::membership
