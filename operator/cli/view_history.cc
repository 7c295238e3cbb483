#include "operator/cli/view_history.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

namespace ringmaster::cli {
namespace {

// The heartbeat after a rebuild reports it; a sidecar that has not reported it by then is gone.
constexpr std::chrono::milliseconds kStragglers{400};
constexpr std::chrono::milliseconds kGiveUp{3000};

constexpr std::size_t kMostViews = 1000;
// A view is compared with the one before, which another sidecar may tell of a moment later.
constexpr std::size_t kMostRanks = 8;

bool Same(const inspection::RankHolder& a, const inspection::RankHolder& b) {
  return a.pod == b.pod && a.slot == b.slot && a.incarnation == b.incarnation;
}

std::vector<inspection::RankHolder> Without(const std::vector<inspection::RankHolder>& from,
                                            const std::vector<inspection::RankHolder>& what) {
  std::vector<inspection::RankHolder> rest;
  for (const inspection::RankHolder& rank : from) {
    if (std::none_of(what.begin(), what.end(), [&](auto& other) { return Same(rank, other); }))
      rest.push_back(rank);
  }
  return rest;
}

bool IsFirst(std::uint64_t epoch) { return (epoch & ((std::uint64_t{1} << 40) - 1)) == 1; }

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void ViewHistory::Observe(const inspection::SidecarStatus& status, TimePoint now) {
  ObserveView(status, now);
  for (const job::Rebuild& rebuild : status.rebuilds) ObserveRebuild(rebuild, now);
  ForgetOld();
}

void ViewHistory::ForgetOld() {
  while (ranks_.size() > kMostRanks) ranks_.erase(ranks_.begin());
  while (views_.size() > kMostViews && views_.begin()->second.told) {
    const auto oldest = views_.begin();
    forgotten_until_ = oldest->first;
    forgotten_steps_lost_ += oldest->second.rebuild.steps_lost;
    ++forgotten_;
    views_.erase(oldest);
  }
}

void ViewHistory::ObserveView(const inspection::SidecarStatus& status, TimePoint now) {
  if (status.epoch <= forgotten_until_ || status.ranks.empty()) return;
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

void ViewHistory::ObserveRebuild(const job::Rebuild& seen, TimePoint now) {
  if (seen.epoch <= forgotten_until_) return;
  InferBootstrap(seen, now);
  auto [it, fresh] = views_.try_emplace(seen.epoch);
  ViewRecord& record = it->second;
  if (fresh) record.first_seen = now;
  job::Rebuild& known = record.rebuild;
  job::PhaseSeconds seconds = known.seconds;
  job::KeepLongest(seen.seconds, &seconds);
  std::int64_t lost = std::max(known.steps_lost, seen.steps_lost);
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
void ViewHistory::InferBootstrap(const job::Rebuild& change, TimePoint now) {
  // A sidecar forgets the members of old changes of a large job.
  if (change.members.empty()) return;
  if (!IsFirst(change.parent) || views_.count(change.parent)) return;
  if (change.parent <= forgotten_until_) return;
  job::Rebuild bootstrap{.epoch = change.parent, .reason = "Bootstrap"};
  for (const std::string& member : change.members)
    if (!Contains(change.joined, member)) bootstrap.members.push_back(member);
  bootstrap.members.insert(bootstrap.members.end(), change.left.begin(), change.left.end());
  bootstrap.world_size = static_cast<int>(bootstrap.members.size());
  views_[change.parent] = {.rebuild = std::move(bootstrap), .first_seen = now};
}

void ViewHistory::CompareWithParent(ViewRecord* record) {
  auto self = views_.find(record->rebuild.epoch);
  if (self != views_.end() && self != views_.begin())
    record->old_size = std::prev(self)->second.rebuild.world_size;
  auto now = ranks_.find(record->rebuild.epoch);
  if (now == ranks_.end() || now == ranks_.begin()) return;
  const auto& before = std::prev(now)->second;
  record->lost = Without(before, now->second);
  record->gained = Without(now->second, before);
}

bool ViewHistory::HasRank(const inspection::RankHolder& place) const {
  return !ranks_.empty() &&
         std::any_of(ranks_.rbegin()->second.begin(), ranks_.rbegin()->second.end(),
                     [&](const inspection::RankHolder& worker) {
                       return worker.pod == place.pod && worker.slot == place.slot;
                     });
}

bool ViewHistory::HadRank(const inspection::RankHolder& place) const {
  const std::string one_of_many = place.pod + "/" + std::to_string(place.slot);
  return std::any_of(views_.begin(), views_.lower_bound(epoch_), [&](const auto& view) {
    const std::vector<std::string>& members = view.second.rebuild.members;
    return Contains(members, place.pod) || Contains(members, one_of_many);
  });
}

bool ViewHistory::IsSettled(const ViewRecord& record, TimePoint now) const {
  auto age = now - record.first_seen;
  bool first = record.rebuild.parent == 0 && record.old_size == 0;
  bool superseded = record.rebuild.epoch < epoch_;
  auto resume = record.rebuild.seconds.find(job::kResume);  // 0 until it is known
  bool stepped = resume != record.rebuild.seconds.end() && resume->second > 0;
  return age >= kGiveUp || (age >= kStragglers && (stepped || first || superseded));
}

std::vector<ViewRecord> ViewHistory::TakeSettled(TimePoint now, bool last) {
  std::vector<ViewRecord> settled;
  for (auto& [epoch, record] : views_) {
    if (record.told) continue;
    if (!last && !IsSettled(record, now)) break;
    record.told = true;
    settled.push_back(record);
  }
  return settled;
}

std::int64_t ViewHistory::steps_lost() const {
  std::int64_t lost = forgotten_steps_lost_;
  for (const auto& [epoch, record] : views_) lost += record.rebuild.steps_lost;
  return lost;
}

}  // namespace ringmaster::cli
