#include "operator/controllers/job_reports.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <variant>

namespace ringmaster::controllers {
namespace {

constexpr std::size_t kMostRebuilds = 64;
// More than any job has: what sidecars report is kept only up to these limits, whatever they send.
constexpr std::size_t kMostUncountedExits = 4'096;
constexpr int kMostSlots = 1'024;
constexpr std::chrono::hours kLongestAgo{24 * 365};  // a longer time would overflow a clock's range

planner::Time Before(planner::Time now, std::chrono::milliseconds ago) {
  return now - std::clamp<std::chrono::milliseconds>(ago, ago.zero(), kLongestAgo);
}

// The reports that are of their own sidecar alone.

void Note(ReadinessReport report, planner::Time now, planner::SidecarFacts* sidecar) {
  if (report.ready && !sidecar->ready) sidecar->ready_since = now;
  if (!report.ready) sidecar->ready_since.reset();
  sidecar->ready = report.ready;
  sidecar->missing_slots = std::move(report.missing_slots);
  sidecar->candidate = std::move(report.candidate);
}

void Note(const FinishedReport& report, planner::Time, planner::SidecarFacts* sidecar) {
  sidecar->finished_epoch = std::max(sidecar->finished_epoch, report.epoch);
}

void Note(const HealthReport& report, planner::Time now, planner::SidecarFacts* sidecar) {
  sidecar->able = report.able;
  sidecar->unable_since = Before(now, report.unable);
}

void Note(StallsReport report, planner::Time now, planner::SidecarFacts* sidecar) {
  sidecar->stalls = std::move(report.stalls);
  sidecar->stalls_at = now;
}

void Note(FailingGpusReport report, planner::Time, planner::SidecarFacts* sidecar) {
  sidecar->failing_gpus = std::move(report.gpus);
}

void Note(const StepAwaitedReport& report, planner::Time now, planner::SidecarFacts* sidecar) {
  sidecar->step_awaited_since.reset();
  if (report.awaited > report.awaited.zero())
    sidecar->step_awaited_since = Before(now, report.awaited);
}

void Note(AllLeaveReport, planner::Time, planner::SidecarFacts* sidecar) {
  sidecar->knows_that_all_leave = true;
}

void Note(membership::RecoveryReport report, planner::Time, planner::SidecarFacts* sidecar) {
  sidecar->report = std::move(report);
}

bool MakesSense(const job::WorkerExit& exit) { return exit.slot >= 0 && exit.slot < kMostSlots; }

bool MakesSense(const SidecarReport& report) {
  if (const auto* exit = std::get_if<job::WorkerExit>(&report)) return MakesSense(*exit);
  const auto* earlier = std::get_if<EarlierExits>(&report);
  return earlier == nullptr ||
         std::all_of(earlier->exits.begin(), earlier->exits.end(),
                     [](const job::WorkerExit& exit) { return MakesSense(exit); });
}

}  // namespace

void JobReports::Connected(const job::Registration& registration, planner::Time now) {
  planner::SidecarFacts& sidecar = sidecars_[registration.pod_uid];
  const planner::SidecarFacts before = std::move(sidecar);
  sidecar = planner::SidecarFacts{registration};
  sidecar.connected = true;
  sidecar.finished_epoch = before.finished_epoch;
  sidecar.last_exit = before.last_exit;
  if (keep_recovery_reports_) sidecar.report = before.report;
  sidecar.unable_since = now;
  OnEpoch(registration.epoch, now);
}

void JobReports::Disconnected(const std::string& pod_uid, planner::Time now) {
  planner::SidecarFacts& sidecar = sidecars_[pod_uid];
  sidecar.connected = false;
  sidecar.ready = false;
  sidecar.ready_since.reset();
  sidecar.able = false;
  sidecar.stalls.clear();
  sidecar.step_awaited_since.reset();
  sidecar.unable_since = now;
  // The sidecar may come back without its file, and so without its promise: it is asked again.
  if (!keep_recovery_reports_) sidecar.report.reset();
}

bool JobReports::Take(const std::string& pod_uid, SidecarReport report, planner::Time now) {
  if (!MakesSense(report)) return false;
  planner::SidecarFacts& sidecar = sidecars_[pod_uid];
  std::visit(
      [&](auto& one) {
        using Report = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Report, ViewReport>) {
          OnView(std::move(one), now, &sidecar);
        } else if constexpr (std::is_same_v<Report, job::WorkerExit>) {
          OnWorkerExit(std::move(one), &sidecar);
        } else if constexpr (std::is_same_v<Report, EarlierExits>) {
          OnEarlierExits(std::move(one), &sidecar);
        } else {
          Note(std::move(one), now, &sidecar);
        }
      },
      report);
  return true;
}

void JobReports::OnView(ViewReport report, planner::Time now, planner::SidecarFacts* sidecar) {
  sidecar->epoch = std::max(sidecar->epoch, report.epoch);
  OnEpoch(report.epoch, now);
  if (membership::EpochOf(report.view) > membership::EpochOf(view_)) {
    view_ = std::move(report.view);
  }
  if (report.rebuild) Merge(std::move(*report.rebuild));
}

void JobReports::OnEpoch(membership::Epoch epoch, planner::Time now) {
  if (epoch > told_view_.epoch) told_view_ = {epoch, now};
}

// The ring is complete again when the slowest member has finished.
void JobReports::Merge(job::Rebuild rebuild) {
  job::Rebuild& known = rebuilds_[rebuild.epoch];
  known.epoch = rebuild.epoch;
  if (known.reason.empty()) known.reason = rebuild.reason;
  if (job::TotalSeconds(rebuild.seconds) > job::TotalSeconds(known.seconds)) {
    known.seconds = std::move(rebuild.seconds);
  }
  known.steps_lost = std::max(known.steps_lost, rebuild.steps_lost);
  while (rebuilds_.size() > kMostRebuilds) rebuilds_.erase(rebuilds_.begin());
}

void JobReports::OnEarlierExits(EarlierExits earlier, planner::SidecarFacts* sidecar) {
  for (job::WorkerExit& exit : earlier.exits) {
    exit.told_before = true;
    OnWorkerExit(std::move(exit), sidecar);
  }
}

void JobReports::OnWorkerExit(job::WorkerExit exit, planner::SidecarFacts* sidecar) {
  if (exits_.size() >= kMostUncountedExits) return;
  const auto [newest, is_first] =
      known_exits_.try_emplace({sidecar->pod_uid, exit.slot}, exit.incarnation);
  if (!is_first && exit.incarnation <= newest->second) return;
  newest->second = exit.incarnation;
  exit.pod_name = sidecar->pod_name;
  exit.pod_uid = sidecar->pod_uid;
  if (!exit.by_us) sidecar->last_exit = exit.exit_code;
  exits_.push_back(std::move(exit));
}

bool JobReports::IsFullFor(const std::string& pod_uid) const {
  return sidecars_.size() >= kMostSidecars && sidecars_.count(pod_uid) == 0;
}

JobFacts JobReports::Facts() const {
  JobFacts facts{
      .sidecars = {}, .exits = exits_, .view = view_, .told_view = told_view_, .rebuilds = {}};
  for (const auto& [uid, sidecar] : sidecars_) facts.sidecars.push_back(sidecar);
  for (const auto& [epoch, rebuild] : rebuilds_) facts.rebuilds.push_back(rebuild);
  return facts;
}

void JobReports::ExitsCounted(std::size_t count) {
  exits_.erase(exits_.begin(), exits_.begin() + std::min(count, exits_.size()));
}

void JobReports::Retain(const std::set<std::string>& pod_uids) {
  std::erase_if(sidecars_, [&](const auto& entry) {
    return !entry.second.connected && pod_uids.count(entry.first) == 0;
  });
  std::erase_if(known_exits_,
                [&](const auto& entry) { return sidecars_.count(entry.first.first) == 0; });
}

}  // namespace ringmaster::controllers
