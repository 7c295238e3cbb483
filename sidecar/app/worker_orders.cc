#include "sidecar/app/worker_orders.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {
namespace {

// In fences. A state that is being saved for a joiner, say, ends with its view; the longest that a
// worker takes in good order is its patience with NCCL, a minute.
constexpr int kStopPatience = 12;
// Ticks come four times a second. A longer time between two is this process's own standstill.
constexpr std::chrono::milliseconds kLongestTick{1000};

}  // namespace

WorkerOrders::WorkerOrders(const WorkerTableOptions& options, const WorkerTableCallbacks* callbacks,
                           WorkerProcesses* processes, LauncherPeer* launcher)
    : without_(options.without),
      callbacks_(callbacks),
      processes_(processes),
      launcher_(launcher),
      notifier_(options, callbacks->send, callbacks->changed),
      barrier_(options.without),
      stop_patience_(kStopPatience * options.fence) {}

void WorkerOrders::Promoted(const WorkerProcess& worker) {
  if (worker.connection.welcomed()) notifier_.SendPromoted(worker);
}

void WorkerOrders::Restore(ViewPtr view, SteadyTime now) {
  notifier_.Restore(std::move(view));
  ExpectWorkers(now);
  // The job has begun without them.
  for (WorkerProcess& worker : processes_->all()) {
    if (worker.connection.welcomed() && worker.stage.begins()) notifier_.SendView(&worker);
  }
}

void WorkerOrders::ExpectWorkers(SteadyTime now) {
  for (const membership::RankEntry& rank : this->view().view()->ranks) {
    if (this->view().IsOwn(rank)) processes_->AddUnheard(rank.slot, rank.incarnation, now);
  }
}

void WorkerOrders::Stop(Epoch epoch) {
  barrier_.Stop(epoch);
  for (WorkerProcess& worker : processes_->all()) {
    const bool told = worker.connection.welcomed() && !without_.Has(GlueClause::kStopSent);
    if (!worker.standby() && told) notifier_.SendStop(&worker, epoch);
  }
  CheckAnswers();
}

void WorkerOrders::CheckAnswers() {
  if (auto epoch = barrier_.TakeStopped(processes_->all(), view())) {
    stop_waited_ = {};
    callbacks_->stopped(*epoch);
  }
  if (auto epoch = barrier_.TakeBoundary(processes_->all(), view())) callbacks_->boundary(*epoch);
}

void WorkerOrders::Tick(SteadyTime now) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(
      now - std::exchange(ticked_, now).value_or(now));
  if (barrier_.stopping() == 0 || (stop_waited_ += std::min(passed, kLongestTick)) < stop_patience_)
    return;
  stop_waited_ = {};
  for (const WorkerProcess& worker : processes_->all()) {
    // One without a connection has its fence.
    if (worker.connection.open() && barrier_.WaitsFor(worker, view()))
      launcher_->Kill(worker, "has not left its view for long, though it was told to");
  }
}

void WorkerOrders::Arm(Epoch epoch) {
  if (view().view() == nullptr || view().epoch() != epoch) return;
  barrier_.Arm(epoch);
  for (const WorkerProcess& worker : processes_->all()) {
    if (worker.connection.welcomed() && view().Lists(worker)) notifier_.SendArm(worker, epoch);
  }
  CheckAnswers();
}

void WorkerOrders::Install(ViewPtr view, SteadyTime now, bool armed) {
  const Epoch epoch = view->epoch;
  notifier_.Install(std::move(view));
  // Its workers have been heard by a forerunner of this sidecar, which died before it knew the
  // view.
  if (!launcher_->seen()) ExpectWorkers(now);
  barrier_.Disarm();
  if (armed) barrier_.Arm(epoch);
  for (WorkerProcess& worker : processes_->all()) {
    if (worker.standby() || !worker.connection.open()) continue;
    if (!worker.connection.welcomed()) {
      notifier_.Welcome(&worker, barrier_);
      continue;
    }
    if (armed && this->view().Lists(worker)) notifier_.SendArm(worker, epoch);
    notifier_.SendView(&worker);
  }
}

void WorkerOrders::SettleWelcome() {
  if (!notifier_.Settle()) return;
  for (WorkerProcess& worker : processes_->all()) {
    if (worker.connection.open() && !worker.connection.welcomed())
      notifier_.Welcome(&worker, barrier_);
  }
}

// ---- The end

void WorkerOrders::Leave(Epoch epoch, const std::string& reason, LauncherPeer::End end) {
  notifier_.Leave(epoch, reason);
  launcher_->Finish(end);
  for (WorkerProcess& worker : processes_->all()) notifier_.SendLeft(&worker, epoch, reason);
}

void WorkerOrders::LeaveJoiners(Epoch epoch, const std::string& reason) {
  notifier_.LeaveJoiners(epoch, reason);
  for (WorkerProcess& worker : processes_->all()) {
    if (!view().Lists(worker)) notifier_.SendLeft(&worker, epoch, reason);
  }
}

void WorkerOrders::GiveUp(const std::string& message) {
  notifier_.GiveUp(message);
  for (const WorkerProcess& worker : processes_->all()) {
    if (worker.connection.welcomed()) notifier_.SendGivenUp(worker);
  }
}

void WorkerOrders::KillUsed(const std::string& reason) {
  for (const WorkerProcess& worker : processes_->all()) {
    if (!worker.standby() && worker.views.installed() != 0) launcher_->Kill(worker, reason);
  }
}

}  // namespace ringmaster::app
