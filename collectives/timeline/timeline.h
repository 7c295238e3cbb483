// Records what this worker does and when: into a file that Chrome and Perfetto open, and into
// memory, where the newest events are. An event costs its thread a copy each; another thread writes
// the file. Off until one of the two is begun.
//
// Thread rule: Record() by one thread alone (the engine's); all else from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/timeline/event_queue.h"
#include "collectives/timeline/recent_events.h"
#include "collectives/timeline/trace_file.h"
#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::timeline {

// Which of the newest events are asked for, and as which process they are shown.
struct RecentRequest {
  int process = 0;  // as TraceText has it
  std::chrono::milliseconds span{0};
  bool tensors = true;          // with the rows of the tensors
  size_t most_bytes = 1 << 20;  // of text; where there is more the oldest events are left out
};

class Timeline {
 public:
  ~Timeline();

  // From now on the newest 16,384 events are kept (2.8 MB). Once is enough.
  void KeepRecent();
  bool keeps_recent() const { return recent_.load(std::memory_order_acquire) != nullptr; }
  // Texts of about `kTextBytes`, which together are those events (trace_text.h).
  std::vector<std::string> Recent(const RecentRequest& request) const;

  // Rank 0 writes to `path` itself, any other rank beside it ("t.rank2.json" for "t.json").
  // `later`: than the first view; ranks have moved since, so no file is written over, but beside it
  // ("t.rank2-2.json"). RM_ERR_INVALID: it records already, or there can be no such file.
  Status Start(const std::string& path, bool later, const Process& process);
  // Returns when all is written. A no-op where nothing is recorded.
  Status Stop();
  bool on() const { return on_.load(std::memory_order_relaxed) || keeps_recent(); }
  // Counts the timelines that were started, that in memory among them.
  uint64_t number() const { return number_.load(std::memory_order_relaxed); }

  // `fill(Event*)` sets all fields of an event; not called when nothing is recorded.
  template <typename Fill>
  void Record(Fill fill) {
    RecentEvents* const recent = recent_.load(std::memory_order_acquire);
    const bool writes = on_.load(std::memory_order_acquire);
    if (recent == nullptr) {
      if (writes) queue_->Push(fill);
      return;
    }
    fill(&newest_);
    recent->Push(newest_);
    if (writes) queue_->Push([this](Event* event) { *event = newest_; });
  }

  static constexpr size_t kTextBytes = 32 << 10;

 private:
  static constexpr size_t kQueuedEvents = 16384;
  static constexpr size_t kRecentEvents = 16384;

  void WriteUntilStopped(std::stop_token stop, TraceFile* file);

  std::atomic<bool> on_{false};
  std::atomic<uint64_t> number_{0};
  // Made once, before on_ is set for the first time, and kept, because Record() may be called late.
  std::unique_ptr<EventQueue> queue_;
  Event newest_;                                // of the recording thread
  std::atomic<RecentEvents*> recent_{nullptr};  // that of kept_recent_

  sync::Mutex mu_;  // one Start() or Stop() at a time
  std::unique_ptr<RecentEvents> kept_recent_ GUARDED_BY(mu_);
  std::unique_ptr<TraceFile> file_ GUARDED_BY(mu_);
  std::jthread writer_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::timeline
