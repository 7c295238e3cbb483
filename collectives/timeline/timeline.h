// Records what this worker does and when, into a file that Chrome and Perfetto open. Off until it
// is started; then an event costs its thread a copy, and another thread writes.
//
// Thread rule: Start() and Stop() from any thread; Record() by one thread alone (the engine's).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "collectives/timeline/event_queue.h"
#include "collectives/timeline/trace_file.h"
#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::timeline {

class Timeline {
 public:
  ~Timeline();

  // Rank 0 writes to `path` itself, any other rank beside it ("t.rank2.json" for "t.json").
  // `later`: than the first view; ranks have moved since, so no file is written over, but beside it
  // ("t.rank2-2.json"). RM_ERR_INVALID: it records already, or there can be no such file.
  Status Start(const std::string& path, bool later, const Process& process);
  // Returns when all is written. A no-op where nothing is recorded.
  Status Stop();
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Counts the timelines that were started.
  uint64_t number() const { return number_.load(std::memory_order_relaxed); }

  // `fill(Event*)` sets all fields of an event; not called when nothing is recorded.
  template <typename Fill>
  void Record(Fill fill) {
    if (on_.load(std::memory_order_acquire)) queue_->Push(fill);
  }

 private:
  static constexpr size_t kQueuedEvents = 16384;

  void WriteUntilStopped(std::stop_token stop, TraceFile* file);

  std::atomic<bool> on_{false};
  std::atomic<uint64_t> number_{0};
  // Made once, before on_ is set for the first time, and kept: Record() may come late.
  std::unique_ptr<EventQueue> queue_;

  sync::Mutex mu_;  // one Start() or Stop() at a time
  std::unique_ptr<TraceFile> file_ GUARDED_BY(mu_);
  std::jthread writer_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::timeline
