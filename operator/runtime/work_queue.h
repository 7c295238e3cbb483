// A queue of keys. A key waits at most once and is given to one worker at a time; if it is added
// while a worker has it, it comes back afterwards. After failures it waits longer each time.
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
  // Puts the key before all others, because something urgent waits for it.
  void AddFirst(const std::string& key);
  // If a key is added several times, the earliest due time counts.
  void AddAfter(const std::string& key, std::chrono::milliseconds delay);
  // Adds the key after a failure: first_backoff, doubled each time up to max_backoff, with jitter.
  void AddBackoff(const std::string& key);
  // The key succeeded: its next failure starts again from first_backoff.
  void Forget(const std::string& key);

  // Blocks until a key is due, or `stop` is requested. The worker calls Done(key) afterwards.
  std::optional<std::string> Take(std::stop_token stop);
  void Done(const std::string& key);
  // For the worker that has `key`: AddFirst was called for this key meanwhile, or for another one
  // that no worker has taken. The worker should then leave what can wait to its next turn.
  bool IsHurried(const std::string& key) const;

  std::size_t size() const;
  // The time from which Take() returns without waiting; nullopt if no key waits.
  std::optional<TimePoint> NextDue() const;

  struct Stats {
    std::size_t depth = 0;      // keys that wait, are deferred, or are being worked on
    std::uint64_t adds = 0;     // calls of Add since the start
    std::uint64_t retries = 0;  // of these, calls of AddBackoff
    std::string longest_key;    // the key that a worker has had for the longest time
    std::chrono::duration<double> longest_running{0};  // how long the worker has had it
  };
  Stats stats() const;

  // The wait after `failures` earlier failures in a row, without jitter.
  static std::chrono::milliseconds Backoff(const WorkQueueOptions& options, int failures);

 private:
  // Keys that wait, by name and by time: with thousands of jobs each look at one takes a key.
  class DueKeys {
   public:
    // If the key waits already, the earlier time counts.
    void Add(const std::string& key, TimePoint due);
    // The first one; null: none waits.
    const std::pair<TimePoint, std::string>* First() const;
    void RemoveFirst();
    std::size_t size() const { return due_.size(); }

   private:
    std::map<std::string, TimePoint> due_;
    std::set<std::pair<TimePoint, std::string>> order_;
  };

  void AddLocked(const std::string& key, TimePoint due) REQUIRES(mu_);

  const WorkQueueOptions options_;
  const Clock clock_;
  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  DueKeys due_ GUARDED_BY(mu_);
  std::map<std::string, TimePoint> deferred_ GUARDED_BY(mu_);  // busy keys, added again
  std::map<std::string, TimePoint> busy_ GUARDED_BY(mu_);      // since when a worker has it
  std::set<std::string> first_ GUARDED_BY(mu_);                // from AddFirst, not taken yet
  std::map<std::string, int> failures_ GUARDED_BY(mu_);
  std::uint64_t adds_ GUARDED_BY(mu_) = 0;
  std::uint64_t retries_ GUARDED_BY(mu_) = 0;
};

}  // namespace ringmaster::runtime
