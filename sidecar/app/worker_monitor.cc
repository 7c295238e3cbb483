#include "sidecar/app/worker_monitor.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/logging/log.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

using membership::EpochText;
using nlohmann::json;

constexpr size_t kKeepExits = 32;

}  // namespace

WorkerMonitor::WorkerMonitor(std::string pod_uid, AgentClock clock, WorkerMonitorPeers parts)
    : pod_uid_(std::move(pod_uid)),
      clock_(std::move(clock)),
      parts_(parts),
      census_(parts.table->fence()) {}

void WorkerMonitor::Start(bool with_view) { census_.Start(with_view, clock_.now()); }

void WorkerMonitor::OnHello(uint64_t connection, bool launcher, const json& hello, int peer_pid) {
  parts_.table->OnHello(connection, launcher, hello, peer_pid, clock_.now());
}

void WorkerMonitor::OnFrame(uint64_t connection, const json& frame) {
  parts_.table->OnFrame(connection, frame, clock_.now());
  parts_.history->Remember(parts_.table->processes().all(), parts_.membership->installed());
  parts_.peers->SetNews(parts_.membership->epoch());
}

void WorkerMonitor::OnClosed(uint64_t connection) {
  parts_.table->OnClosed(connection, clock_.now());
}

void WorkerMonitor::OnChanged() {
  const WorkerTable& table = *parts_.table;
  if (!census_.IsComplete(table.processes(), table.launcher(), clock_.now())) return;
  parts_.membership->Feed(membership::WorkersChanged{parts_.table->processes().Living()});
}

void WorkerMonitor::CheckKnown() {
  if (census_.IsOverdue(clock_.now())) OnChanged();
}

void WorkerMonitor::OnStopped(Epoch epoch) {
  parts_.history->tracker().Stopped(clock_.now());
  parts_.membership->Feed(membership::WorkersStopped{epoch});
}

void WorkerMonitor::OnBoundary(Epoch epoch) {
  parts_.membership->Feed(membership::BoundaryReached{epoch});
  parts_.departure->BoundaryReached(epoch);
}

void WorkerMonitor::OnRebuilt(const job::Rebuild& figures) {
  parts_.membership->Feed(membership::FirstOperationDone{figures.epoch});
  const job::Rebuild* rebuild = parts_.history->Rebuilt(figures);
  const ViewPtr& installed = parts_.membership->installed();
  if (rebuild == nullptr || installed == nullptr || installed->epoch != figures.epoch) return;
  parts_.reports->View(installed, rebuild,
                       parts_.history->progress().Step(parts_.table->processes().all()));
}

void WorkerMonitor::OnFinished(Epoch epoch) {
  if (!parts_.departure->FinishedByRanks(epoch)) return;
  parts_.reports->Finished(epoch);
  parts_.membership->Feed(membership::Finishing{epoch});
}

void WorkerMonitor::OnExited(const job::WorkerExit& exit) {
  logging::Info(
      "worker exited slot={} incarnation={} standby={} exit_code={} signal={} restarting={} "
      "epoch={}",
      exit.slot, exit.incarnation, exit.standby, exit.exit_code, exit.signal, exit.restarting,
      EpochText(parts_.membership->epoch()));
  if (exit.standby) return;
  exits_.push_back(exit);
  if (exits_.size() > kKeepExits) exits_.pop_front();
  if (exit.restarting) parts_.metrics->CountWorkerRestart();
  parts_.metrics->CountWorkerExit(exit.exit_code);
  const Departure& departure = *parts_.departure;
  job::WorkerExit report = exit;
  report.by_us = exit.by_us || departure.draining() || departure.finishing();
  parts_.reports->Exit(report);
  const ViewPtr& installed = parts_.membership->installed();
  const bool in_view =
      installed != nullptr &&
      installed->FindRank(pod_uid_, static_cast<uint32_t>(exit.slot), exit.incarnation) >= 0;
  if (!in_view || departure.finishing() || departure.left()) return;
  const SteadyTime now = clock_.now();
  RebuildTracker& tracker = parts_.history->tracker();
  if (exit.at_us > 0) tracker.Died(SteadyTime(std::chrono::microseconds(exit.at_us)), now);
  tracker.Noticed(now, clock_.unix_ms());
}

}  // namespace ringmaster::app
