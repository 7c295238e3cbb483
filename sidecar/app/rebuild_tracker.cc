#include "sidecar/app/rebuild_tracker.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace ringmaster::app {
namespace {

using membership::View;

constexpr std::chrono::seconds kLongestDetect{60};

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Workers by the name people know them by: the pod, and the slot where a pod has several.
std::set<std::string> WorkerNames(const View& view, int slots, bool only_joined) {
  std::set<std::string> names;
  for (const auto& rank : view.ranks) {
    if (only_joined && !rank.joined) continue;
    std::string name = view.pods[rank.pod].name;
    names.insert(slots > 1 ? name + "/" + std::to_string(rank.slot) : name);
  }
  return names;
}

}  // namespace

void RebuildTracker::Noticed(SteadyTime now, int64_t unix_ms) {
  if (noticed_) return;
  noticed_ = now;
  noticed_unix_ms_ = unix_ms;
}

void RebuildTracker::Died(SteadyTime when, SteadyTime now) {
  // A clock that is not ours says nothing.
  if (when > now || now - when > kLongestDetect) return;
  if (!died_ || when < *died_) died_ = when;
}

void RebuildTracker::StopAsked(SteadyTime now) {
  if (!stop_asked_) stop_asked_ = now;
}

void RebuildTracker::Stopped(SteadyTime now) { stopped_ = now; }

job::Rebuild* RebuildTracker::Installed(const View* before, const View& view, int slots,
                                        SteadyTime now, int64_t unix_ms) {
  job::Rebuild rebuild;
  rebuild.epoch = view.epoch;
  rebuild.parent = view.parent;
  rebuild.reason = membership::ReasonText(view.reason);
  rebuild.planned = view.planned;
  rebuild.at_unix_ms = noticed_ ? noticed_unix_ms_ : unix_ms;
  rebuild.world_size = static_cast<int>(view.ranks.size());
  const std::set<std::string> members = WorkerNames(view, slots, false);
  const std::set<std::string> joined = WorkerNames(view, slots, true);
  rebuild.members.assign(members.begin(), members.end());
  rebuild.joined.assign(joined.begin(), joined.end());
  if (before != nullptr) {
    const std::set<std::string> old = WorkerNames(*before, slots, false);
    std::set_difference(old.begin(), old.end(), members.begin(), members.end(),
                        std::back_inserter(rebuild.left));
  }
  rebuild.steps_before = newest_step_;
  if (noticed_ && died_) {
    rebuild.seconds[job::kDetect] = std::max(0.0, Seconds(*noticed_ - *died_));
  }
  if (noticed_) rebuild.seconds[job::kDecide] = Seconds(now - *noticed_);
  if (stop_asked_) rebuild.seconds[job::kStop] = Seconds(stopped_.value_or(now) - *stop_asked_);
  noticed_.reset();
  stop_asked_.reset();
  stopped_.reset();
  died_.reset();
  if (before == nullptr) return nullptr;
  return &log_->Add(std::move(rebuild));
}

job::Rebuild* RebuildTracker::Finished(const job::Rebuild& figures) {
  job::Rebuild* rebuild = log_->Find(figures.epoch);
  if (rebuild == nullptr) return nullptr;
  job::PhaseSeconds seconds = figures.seconds;
  // The decision is ours to time: a worker sees only a part of it.
  if (rebuild->seconds.count(job::kDecide) > 0) seconds.erase(job::kDecide);
  job::KeepLongest(seconds, &rebuild->seconds);
  const uint64_t resumed = figures.steps_resumed;
  if (!rebuild->complete && rebuild->steps_before > resumed) {
    rebuild->steps_lost = static_cast<int64_t>(rebuild->steps_before - resumed);
    newest_step_ = resumed;
  }
  rebuild->complete = true;
  return rebuild;
}

}  // namespace ringmaster::app
