#include "operator/runtime/work_queue.h"

#include <algorithm>

namespace ringmaster::runtime {

void WorkQueue::DueKeys::Add(const std::string& key, TimePoint due) {
  const auto [at, added] = due_.emplace(key, due);
  if (!added) {
    if (at->second <= due) return;
    order_.erase({at->second, key});
    at->second = due;
  }
  order_.emplace(due, key);
}

const std::pair<WorkQueue::TimePoint, std::string>* WorkQueue::DueKeys::First() const {
  return order_.empty() ? nullptr : &*order_.begin();
}

void WorkQueue::DueKeys::RemoveFirst() {
  due_.erase(order_.begin()->second);
  order_.erase(order_.begin());
}

void WorkQueue::AddLocked(const std::string& key, TimePoint due) {
  if (busy_.count(key) == 0) {
    due_.Add(key, due);
  } else {
    const auto [at, added] = deferred_.emplace(key, due);
    if (!added) at->second = std::min(at->second, due);
  }
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
    const auto* next = due_.First();
    if (next == nullptr) {
      // Every change notifies; the limit only bounds the harm of a lost wake-up.
      (void)changed_.WaitUntil(&mu_, stop, clock_.steady() + std::chrono::seconds(10));
    } else if (next->first > clock_.steady()) {
      const auto until = next->first;  // `next` may be invalid when the wait ends
      (void)changed_.WaitUntil(&mu_, stop, until);
    } else {
      std::string key = next->second;
      due_.RemoveFirst();
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
  const auto* next = due_.First();
  return next == nullptr ? std::nullopt : std::optional(next->first);
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
