// Keys that wait to be looked at. A key waits at most once, is handed to one worker at a time, and
// comes back when it was added while that worker had it. Failures wait longer and longer.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "common/sync/mutex.h"
#include "operator/runtime/clock.h"

namespace ringmaster::runtime {

struct WorkQueueOptions {
  std::chrono::milliseconds first_backoff{50};
  std::chrono::milliseconds max_backoff{30'000};
};

class WorkQueue {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit WorkQueue(WorkQueueOptions options = {}, Clock clock = {})
      : options_(options), clock_(std::move(clock)) {}

  void Add(const std::string& key) { AddAfter(key, std::chrono::milliseconds(0)); }
  // Before all that waits: somebody counts the seconds.
  void AddFirst(const std::string& key);
  // The earliest of all requested moments counts.
  void AddAfter(const std::string& key, std::chrono::milliseconds delay);
  // Again after a failure: first_backoff, doubled each time up to max_backoff, with some jitter.
  void AddBackoff(const std::string& key);
  // The key did well: its next failure starts from first_backoff.
  void Forget(const std::string& key);

  // Blocks until a key is due, or `stop`. Done(key) has to follow.
  std::optional<std::string> Take(std::stop_token stop);
  void Done(const std::string& key);
  // For who has `key` and much to do: it was added first meanwhile, or another was and no worker is
  // free for it. What can wait is better left for the next look then.
  bool IsHurried(const std::string& key) const;

  std::size_t size() const;
  // When the next key is due, which Take() gives without a wait then; nullopt: none waits.
  std::optional<TimePoint> NextDue() const;

  struct Stats {
    std::size_t depth = 0;                             // waiting, deferred or being worked on
    std::uint64_t adds = 0;                            // since the start
    std::uint64_t retries = 0;                         // of these, by AddBackoff
    std::string longest_key;                           // being worked on for the longest time
    std::chrono::duration<double> longest_running{0};  // so long
  };
  Stats stats() const;

  // How long to wait after that many failures in a row before this one, without jitter.
  static std::chrono::milliseconds Backoff(const WorkQueueOptions& options, int failures);

 private:
  void AddLocked(const std::string& key, TimePoint due) REQUIRES(mu_);

  const WorkQueueOptions options_;
  const Clock clock_;
  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  std::map<std::string, TimePoint> due_ GUARDED_BY(mu_);
  std::map<std::string, TimePoint> deferred_ GUARDED_BY(mu_);  // of busy_ keys
  std::map<std::string, TimePoint> busy_ GUARDED_BY(mu_);      // since when
  std::set<std::string> first_ GUARDED_BY(mu_);                // added first, and not taken yet
  std::map<std::string, int> failures_ GUARDED_BY(mu_);
  std::uint64_t adds_ GUARDED_BY(mu_) = 0;
  std::uint64_t retries_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::runtime
