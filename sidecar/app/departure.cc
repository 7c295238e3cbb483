#include "sidecar/app/departure.h"

#include <algorithm>
#include <utility>

#include "common/logging/log.h"

namespace ringmaster::app {

using membership::EpochText;

namespace {

// How long the workers get after the end of the job. All ranks have agreed to the end, and their
// processes end within this time. A worker that has not ended is in an older view, and no other
// rank is left that could tell it of the end.
constexpr std::chrono::seconds kRanksEnd{10};

// Whoever deletes a pod through the API server makes the operator speak, too: within this time,
// mostly. A kubelet that shuts its node down tells the pods alone.
constexpr std::chrono::seconds kOperatorSpeaks{1};

// The job is over, and only the pods know it: so long they stay for an operator that is away, that
// has just died, or that can't write it down.
constexpr std::chrono::seconds kOperatorComesBack{20};

}  // namespace

Departure::Departure(std::string pod_uid, std::chrono::seconds grace, AgentClock clock,
                     MembershipLoop* membership, WorkerTable* workers)
    : pod_uid_(std::move(pod_uid)),
      grace_(grace),
      clock_(std::move(clock)),
      membership_(membership),
      workers_(workers) {}

void Departure::Drain(const std::vector<std::string>& pods, const std::string& reason,
                      std::optional<SteadyTime> deadline, std::optional<bool> all_leave) {
  const bool own = std::find(pods.begin(), pods.end(), pod_uid_) != pods.end();
  if (!own) return membership_->Feed(membership::DrainRequested{pods, deadline});
  operator_has_spoken_ = true;
  says_all_leave_ = says_all_leave_ || all_leave == true;
  if (all_leave) others_may_come_ = !says_all_leave_;
  StartToLeave(pods, reason, deadline);
}

void Departure::StartToLeave(const std::vector<std::string>& pods, const std::string& reason,
                             std::optional<SteadyTime> deadline) {
  if (left_ || finishing()) return;
  if (!draining_)
    logging::Info("draining reason=\"{}\" epoch={}", reason, EpochText(membership_->epoch()));
  draining_ = true;
  drain_reason_ = reason;
  drained_pods_.insert(pods.begin(), pods.end());
  // The other half is for the end of the step.
  const SteadyTime now = clock_.now();
  const SteadyTime half = now + (deadline.value_or(now + grace_) - now) / 2;
  stays_until_ = std::min(stays_until_.value_or(half), half);
  membership_->Feed(membership::DrainRequested{pods, deadline});
  const membership::Role role = membership_->member().role();
  if (role == membership::Role::kWaiting || role == membership::Role::kJoining) {
    Leave(reason);  // in no view there is no boundary to wait for
  } else {
    CheckEverybodyLeaves();
  }
}

void Departure::DrainOnSignal() { LeaveOnSignal(clock_.now() + TimeForBoundary(grace_)); }

void Departure::LeaveOnSignal(SteadyTime deadline) {
  const SteadyTime now = clock_.now();
  if (!operator_awaited_until_)
    operator_awaited_until_ =
        now + std::min<SteadyTime::duration>(kOperatorSpeaks, (deadline - now) / 4);
  StartToLeave({pod_uid_}, "SIGTERM", deadline);
}

void Departure::OperatorConnected(bool connected) {
  // One that takes over has to look first.
  if (connected && !operator_connected_ && operator_awaited_until_)
    operator_awaited_until_ = clock_.now() + kOperatorSpeaks;
  operator_connected_ = connected;
  operator_was_connected_ = operator_was_connected_ || connected;
}

bool Departure::EverybodyLeaves() const {
  const membership::Member& member = membership_->member();
  if (!draining_ || member.role() != membership::Role::kMember) return false;
  if (says_all_leave_) return true;
  const auto& pods = member.current()->pods;
  return std::all_of(pods.begin(), pods.end(), [this](const membership::Pod& pod) {
    return drained_pods_.count(pod.uid) > 0;
  });
}

bool Departure::WaitsForOthers() const {
  const SteadyTime now = clock_.now();
  if (operator_has_spoken_) return others_may_come_ && now < stays_until_;
  if (!operator_awaited_until_) return false;
  return now < (operator_connected_ ? operator_awaited_until_ : stays_until_);
}

void Departure::LeaveByPlan() { Leave(drain_reason_.empty() ? "drained" : drain_reason_); }

void Departure::BoundaryReached(Epoch epoch) {
  boundary_ = epoch;
  CheckEverybodyLeaves();
}

bool Departure::GoesAtNextBoundary() const {
  return !left_ && !finishing() && EverybodyLeaves() && !WaitsForOthers();
}

bool Departure::EntersArmed(Epoch epoch) {
  if (!GoesAtNextBoundary()) return false;
  armed_ = epoch;
  return true;
}

void Departure::CheckEverybodyLeaves() {
  if (!GoesAtNextBoundary()) return;
  const Epoch epoch = membership_->epoch();
  if (membership_->installed() == nullptr || membership_->installed()->epoch != epoch) return;
  if (std::exchange(armed_, epoch) != epoch) workers_->orders().Arm(epoch);
  // Who waits to be let in gets the state from this pod in the next view. This pod leaves after it.
  if (boundary_ == epoch && !membership_->member().admits()) Leave(drain_reason_);
}

void Departure::Leave(const std::string& reason) {
  if (std::exchange(left_, true)) return;
  logging::Info("left by plan reason=\"{}\" epoch={}", reason, EpochText(membership_->epoch()));
  workers_->orders().Leave(
      membership_->epoch(), reason,
      terminating() ? LauncherPeer::End::kTerminated : LauncherPeer::End::kLeft);
}

bool Departure::FinishedByRanks(Epoch epoch) {
  if (finishing()) return false;
  finishing_since_ = clock_.now();
  logging::Info("finishing epoch={}", EpochText(epoch));
  workers_->launcher().Finish(LauncherPeer::End::kOfJob);
  workers_->orders().LeaveJoiners(epoch, "the job has finished");
  return true;
}

void Departure::FinishByOperator(const std::string& reason) {
  operator_knows_of_end_ = true;
  if (finishing() || left_) return;
  const Epoch epoch = membership_->epoch();
  logging::Info("told to finish reason=\"{}\" epoch={}", reason, EpochText(epoch));
  finishing_since_ = clock_.now();
  workers_->launcher().Finish(LauncherPeer::End::kOfJob);
  workers_->orders().LeaveJoiners(epoch,
                                  reason);  // ranks have agreed by themselves, or are about to
  membership_->Feed(membership::Finishing{membership_->epoch()});
}

void Departure::CheckFinish() {
  if (finishing() && clock_.now() - *finishing_since_ >= kRanksEnd) Leave("the job has ended");
}

void Departure::Terminate() {
  if (!termination_.Begin(clock_.now(), grace_)) return;
  logging::Info("terminating grace_seconds={} epoch={}", grace_.count(),
                EpochText(membership_->epoch()));
  if (!finishing()) LeaveOnSignal(termination_.resign_at());
  CheckTermination();
}

// If all who know it are gone, a pod that was taken for lost, and comes back, makes the operator
// take the job for one that still trains.
bool Departure::OperatorHasToHear() const {
  // Where it says that all leave it has deleted, suspended or failed the job, and forgets no end.
  return finishing() && operator_was_connected_ && !operator_knows_of_end_ && !says_all_leave_ &&
         clock_.now() - *finishing_since_ < kOperatorComesBack;
}

void Departure::CheckTermination() {
  if (!terminating()) return;
  const membership::Member& member = membership_->member();
  // A pod that has left by plan goes on until the quorum record knows the view that dropped it:
  // others may not have heard, and nobody else would tell them.
  const bool left = member.role() == membership::Role::kLeft && !member.done();
  const Termination::Steps steps =
      termination_.Next(clock_.now(), {.workers_live = workers_->processes().AnyLiving(),
                                       .needed = left || OperatorHasToHear(),
                                       .finishing_since = finishing_since_});
  if (steps.stop_launcher) workers_->launcher().Stop(1, "the grace period ends");
  if (steps.end) membership_->End();
}

}  // namespace ringmaster::app
