#include "operator/cli/progress.h"

#include <algorithm>

#include "operator/api/exit_code.h"

namespace ringmaster::cli {
namespace {

// The heartbeat after a rebuild reports it; a sidecar that has not reported it by then is gone.
constexpr std::chrono::milliseconds kStragglers{400};
constexpr std::chrono::milliseconds kGiveUp{3000};

bool Same(const inspection::RankStatus& a, const inspection::RankStatus& b) {
  return a.pod == b.pod && a.slot == b.slot && a.incarnation == b.incarnation;
}

std::vector<inspection::RankStatus> Without(const std::vector<inspection::RankStatus>& from,
                                            const std::vector<inspection::RankStatus>& what) {
  std::vector<inspection::RankStatus> rest;
  for (const inspection::RankStatus& rank : from) {
    if (std::none_of(what.begin(), what.end(), [&](auto& other) { return Same(rank, other); }))
      rest.push_back(rank);
  }
  return rest;
}

uint64_t LineageOf(uint64_t epoch) { return epoch >> 40; }

bool IsFirst(uint64_t epoch) { return (epoch & ((uint64_t{1} << 40) - 1)) == 1; }

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void JobProgress::Observe(const inspection::SidecarStatus& status, TimePoint now) {
  sidecars_[status.pod] = status;
  ObserveStep(status);
  for (const job::WorkerExit& exit : status.exits) NoteExit(status.pod, exit.exit_code);
  ObserveView(status, now);
  for (const job::Rebuild& rebuild : status.rebuilds) ObserveRebuild(rebuild, now);

  // Values are for people: those from the sidecar of rank 0, else from the first sidecar that has
  // any.
  bool has_rank0 = std::any_of(status.workers.begin(), status.workers.end(),
                               [](auto& worker) { return worker.rank == 0; });
  for (const auto& [name, value] : status.values)
    if (has_rank0 || !values_.count(name)) values_[name] = value;

  double sum = 0;
  for (const auto& [pod, sidecar] : sidecars_) sum += sidecar.samples_per_second;
  samples_per_second_ = sum;
}

bool JobProgress::HasRank(const inspection::RankStatus& place) const {
  return !ranks_.empty() &&
         std::any_of(ranks_.rbegin()->second.begin(), ranks_.rbegin()->second.end(),
                     [&](const inspection::RankStatus& worker) {
                       return worker.pod == place.pod && worker.slot == place.slot;
                     });
}

void JobProgress::ObserveStep(const inspection::SidecarStatus& status) {
  const uint64_t lineage = LineageOf(status.epoch);
  if (lineage < lineage_) return;
  if (lineage > lineage_) step_ = 0;
  lineage_ = lineage;
  step_ = std::max(step_, status.step);
  for (const inspection::WorkerStatus& worker : status.workers)
    step_ = std::max(step_, worker.step);
}

void JobProgress::ObserveView(const inspection::SidecarStatus& status, TimePoint now) {
  if (status.epoch == 0 || status.ranks.empty()) return;
  ranks_.try_emplace(status.epoch, status.ranks);
  auto [it, fresh] = views_.try_emplace(status.epoch);
  ViewRecord& record = it->second;
  if (fresh) {
    record.first_seen = now;
    record.rebuild.epoch = status.epoch;
  }
  job::Rebuild& rebuild = record.rebuild;
  if (rebuild.reason.empty()) rebuild.reason = status.view_reason;
  if (rebuild.members.empty()) rebuild.members = status.pods;
  rebuild.world_size = static_cast<int>(status.ranks.size());
  CompareWithParent(&record);
  if (status.epoch >= epoch_) {
    epoch_ = status.epoch;
    world_size_ = rebuild.world_size;
  }
}

void JobProgress::ObserveRebuild(const job::Rebuild& seen, TimePoint now) {
  if (seen.epoch == 0) return;
  InferBootstrap(seen, now);
  auto [it, fresh] = views_.try_emplace(seen.epoch);
  ViewRecord& record = it->second;
  if (fresh) record.first_seen = now;
  job::Rebuild& known = record.rebuild;
  job::PhaseSeconds seconds = known.seconds;
  job::KeepLongest(seen.seconds, &seconds);
  int64_t lost = std::max(known.steps_lost, seen.steps_lost);
  int size = known.world_size ? known.world_size : seen.world_size;
  if (known.parent == 0) known = seen;
  if (known.members.empty()) known.members = seen.members;
  known.seconds = std::move(seconds);
  known.steps_lost = lost;
  known.world_size = size;
  CompareWithParent(&record);
  if (seen.epoch > epoch_) {
    epoch_ = seen.epoch;
    world_size_ = size;
  }
}

// A job may lose a worker before its sidecars were first asked: the first view then follows from
// the change.
void JobProgress::InferBootstrap(const job::Rebuild& change, TimePoint now) {
  if (!IsFirst(change.parent) || views_.count(change.parent)) return;
  job::Rebuild bootstrap{.epoch = change.parent, .reason = "Bootstrap"};
  for (const std::string& member : change.members)
    if (!Contains(change.joined, member)) bootstrap.members.push_back(member);
  bootstrap.members.insert(bootstrap.members.end(), change.left.begin(), change.left.end());
  bootstrap.world_size = static_cast<int>(bootstrap.members.size());
  views_[change.parent] = {.rebuild = std::move(bootstrap), .first_seen = now};
}

void JobProgress::CompareWithParent(ViewRecord* record) {
  auto self = views_.find(record->rebuild.epoch);
  if (self != views_.end() && self != views_.begin())
    record->old_size = std::prev(self)->second.rebuild.world_size;
  auto now = ranks_.find(record->rebuild.epoch);
  if (now == ranks_.end() || now == ranks_.begin()) return;
  const auto& before = std::prev(now)->second;
  record->lost = Without(before, now->second);
  record->gained = Without(now->second, before);
}

void JobProgress::NoteExit(const std::string& pod, int code) {
  const auto signal = api::SignalOfExit(code);
  ends_[pod] = signal ? "killed by signal " + std::to_string(*signal)
                      : "exited with code " + std::to_string(code);
}

void JobProgress::Forget(const std::string& pod) { sidecars_.erase(pod); }

std::string JobProgress::HowEnded(const std::string& pod) const {
  auto found = ends_.find(pod);
  return found == ends_.end() ? "" : found->second;
}

bool JobProgress::Settled(const ViewRecord& record, TimePoint now) const {
  auto age = now - record.first_seen;
  bool first = record.rebuild.parent == 0 && record.old_size == 0;
  bool superseded = record.rebuild.epoch < epoch_;
  auto resume = record.rebuild.seconds.find(job::kResume);  // 0 until it is known
  bool stepped = resume != record.rebuild.seconds.end() && resume->second > 0;
  return age >= kGiveUp || (age >= kStragglers && (stepped || first || superseded));
}

std::vector<ViewRecord> JobProgress::TakeSettled(TimePoint now, bool last) {
  std::vector<ViewRecord> settled;
  for (auto& [epoch, record] : views_) {
    if (record.told) continue;
    if (!last && !Settled(record, now)) break;
    record.told = true;
    settled.push_back(record);
  }
  return settled;
}

int64_t JobProgress::steps_lost() const {
  int64_t lost = 0;
  for (const auto& [epoch, record] : views_) lost += record.rebuild.steps_lost;
  return lost;
}

std::string JobProgress::state() const {
  const inspection::SidecarStatus* best = nullptr;
  for (const auto& [pod, sidecar] : sidecars_) {
    if (!best || sidecar.epoch > best->epoch ||
        (sidecar.epoch == best->epoch && sidecar.coordinator))
      best = &sidecar;
  }
  return best ? best->state : "";
}

}  // namespace ringmaster::cli
