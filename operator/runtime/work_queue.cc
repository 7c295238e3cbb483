#include "operator/runtime/work_queue.h"

#include <algorithm>

namespace ringmaster::runtime {

void WorkQueue::AddLocked(const std::string& key, TimePoint due) {
  auto& where = busy_.count(key) != 0 ? deferred_ : due_;
  const auto [at, added] = where.emplace(key, due);
  if (!added) at->second = std::min(at->second, due);
  changed_.NotifyOne();
}

void WorkQueue::AddAfter(const std::string& key, std::chrono::milliseconds delay) {
  const sync::MutexLock lock(&mu_);
  ++adds_;
  AddLocked(key, clock_.steady() + delay);
}

void WorkQueue::AddFirst(const std::string& key) {
  const sync::MutexLock lock(&mu_);
  ++adds_;
  first_.insert(key);
  AddLocked(key, clock_.steady() - std::chrono::hours(1));
}

void WorkQueue::AddBackoff(const std::string& key) {
  const sync::MutexLock lock(&mu_);
  ++adds_;
  ++retries_;
  AddLocked(key, clock_.steady() + clock_.jitter(Backoff(options_, failures_[key]++), 10));
}

std::chrono::milliseconds WorkQueue::Backoff(const WorkQueueOptions& options, int failures) {
  return std::min(options.first_backoff * (1 << std::min(failures, 20)), options.max_backoff);
}

void WorkQueue::Forget(const std::string& key) {
  const sync::MutexLock lock(&mu_);
  failures_.erase(key);
}

std::optional<std::string> WorkQueue::Take(std::stop_token stop) {
  sync::MutexLock lock(&mu_);
  while (!stop.stop_requested()) {
    const auto next = std::min_element(
        due_.begin(), due_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (next == due_.end()) {
      // Every change notifies; the limit only bounds the harm of a lost wake-up.
      (void)changed_.WaitUntil(&mu_, stop, clock_.steady() + std::chrono::seconds(10));
    } else if (next->second > clock_.steady()) {
      const auto until = next->second;  // `next` may be invalid when the wait ends
      (void)changed_.WaitUntil(&mu_, stop, until);
    } else {
      std::string key = next->first;
      due_.erase(next);
      first_.erase(key);
      busy_[key] = clock_.steady();
      return key;
    }
  }
  return std::nullopt;
}

void WorkQueue::Done(const std::string& key) {
  const sync::MutexLock lock(&mu_);
  busy_.erase(key);
  const auto deferred = deferred_.find(key);
  if (deferred == deferred_.end()) return;
  const auto due = deferred->second;
  deferred_.erase(deferred);
  AddLocked(key, due);
}

bool WorkQueue::IsHurried(const std::string& key) const {
  const sync::MutexLock lock(&mu_);
  for (const std::string& first : first_) {
    // A key that another worker has is urgent for that worker only.
    if (first == key || busy_.count(first) == 0) return true;
  }
  return false;
}

std::size_t WorkQueue::size() const {
  const sync::MutexLock lock(&mu_);
  return due_.size() + deferred_.size() + busy_.size();
}

std::optional<WorkQueue::TimePoint> WorkQueue::NextDue() const {
  const sync::MutexLock lock(&mu_);
  std::optional<TimePoint> next;
  for (const auto& [key, due] : due_) next = next ? std::min(*next, due) : due;
  return next;
}

WorkQueue::Stats WorkQueue::stats() const {
  const sync::MutexLock lock(&mu_);
  Stats stats{
      .depth = due_.size() + deferred_.size() + busy_.size(), .adds = adds_, .retries = retries_};
  const auto now = clock_.steady();
  for (const auto& [key, since] : busy_) {
    if (now - since <= stats.longest_running) continue;
    stats.longest_running = now - since;
    stats.longest_key = key;
  }
  return stats;
}

}  // namespace ringmaster::runtime
