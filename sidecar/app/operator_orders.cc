#include "sidecar/app/operator_orders.h"

#include <chrono>
#include <memory>
#include <utility>

#include "common/logging/log.h"
#include "common/membership/view_json.h"

namespace ringmaster::app {
namespace {

using membership::EpochText;
using std::chrono::milliseconds;

// The operator sends the target and, if the job has a view, that view in one breath; it accepts the
// pod before it has looked.
constexpr milliseconds kViewMayFollow{100};
constexpr std::chrono::seconds kOperatorLooks{3};
constexpr std::chrono::seconds kKillAgain{1};

}  // namespace

OperatorOrders::OperatorOrders(AgentClock clock, MembershipLoop* membership, WorkerTable* workers,
                               Departure* departure, OperatorReports* reports)
    : clock_(std::move(clock)),
      membership_(membership),
      workers_(workers),
      departure_(departure),
      reports_(reports) {}

void OperatorOrders::OnConnection(bool connected) {
  connected_ = connected;
  departure_->OperatorConnected(connected);
  logging::Info("operator link connected={}", connected);
  if (!connected) return;
  reports_->ForgetHealth();
  reports_->Health(membership_->member().able() || departure_->finishing(), clock_.now());
}

void OperatorOrders::OnAccepted() {
  if (!accepted_at_) accepted_at_ = clock_.now();
}

void OperatorOrders::OnViewDecided(const std::string& text) {
  auto view = membership::DecodeView(text);
  if (!view) return logging::Warn("first view refused error=\"{}\"", view.error());
  membership_->Feed(
      membership::ViewDecided{std::make_shared<const membership::View>(std::move(*view))});
}

void OperatorOrders::OnDrain(const std::vector<std::string>& pods, const std::string& reason,
                             int64_t deadline_unix_ms, std::optional<int64_t> left_ms,
                             std::optional<bool> all_leave) {
  std::optional<SteadyTime> deadline;
  if (deadline_unix_ms > 0) {
    // This node's clock may be ahead of the operator's.
    const int64_t left = left_ms.value_or(deadline_unix_ms - clock_.unix_ms());
    deadline = clock_.now() + TimeForBoundary(milliseconds(left));
  }
  departure_->Drain(pods, reason, deadline, all_leave);
}

void OperatorOrders::OnTarget(membership::Sizes sizes, uint32_t expected_pods) {
  if (!target_at_) target_at_ = clock_.now();
  membership_->Feed(membership::TargetChanged{std::move(sizes), expected_pods});
}

void OperatorOrders::OnFinish(const std::string& reason) { departure_->FinishByOperator(reason); }

void OperatorOrders::OnRecover(uint64_t lineage, bool fresh_workers) {
  if (departure_->finishing()) return;
  logging::Info("asked to make way lineage={} fresh_workers={} epoch={}", lineage, fresh_workers,
                EpochText(membership_->epoch()));
  if (lineage <= membership::EpochLineage(membership_->epoch())) return;
  fresh_lineage_ = fresh_workers ? lineage : 0;
  if (fresh_workers) KillUsed();
  membership_->Feed(membership::RecoveryAsked{lineage});
}

void OperatorOrders::KillUsed() {
  if (departure_->draining() || departure_->left()) return;
  killed_at_ = clock_.now();
  workers_->orders().KillUsed("the job starts again from its checkpoint");
}

void OperatorOrders::CheckFresh() {
  const bool begun = fresh_lineage_ <= membership::EpochLineage(membership_->epoch());
  if (!begun && clock_.now() - killed_at_ >= kKillAgain) KillUsed();
}

bool OperatorOrders::HasLooked() const {
  const SteadyTime now = clock_.now();
  return (target_at_ && now - *target_at_ >= kViewMayFollow) ||
         (accepted_at_ && now - *accepted_at_ >= kOperatorLooks);
}

}  // namespace ringmaster::app
