// Records what this worker does and when: into a file that Chrome and Perfetto open, and into
// memory, where the newest events are kept. For each of the two, an event costs the recording
// thread one copy; another thread writes the file (TraceWriter). Nothing is recorded until one of
// the two is begun.
//
// Thread rule: Record() by one thread alone (the engine's); all else from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collectives/timeline/event_queue.h"
#include "collectives/timeline/recent_events.h"
#include "collectives/timeline/trace_file.h"
#include "collectives/timeline/trace_writer.h"
#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::timeline {

// Which of the newest events are asked for, and as which process they are shown.
struct RecentRequest {
  int process = 0;  // the number that TraceText shows as the process
  std::chrono::milliseconds span{0};
  bool tensors = true;          // with the rows of the tensors
  size_t most_bytes = 1 << 20;  // of text; if there is more, the oldest events are left out
};

class Timeline {
 public:
  // `opening`: how long a file may take to be opened.
  explicit Timeline(std::chrono::milliseconds opening = kPatienceWithOpening) : opening_(opening) {}
  ~Timeline();

  // From now on the newest 16,384 events are kept (2.8 MB). Further calls do nothing.
  void KeepRecent();
  bool keeps_recent() const { return recent_.load(std::memory_order_acquire) != nullptr; }
  // The events that `request` asks for as texts of about `kTextBytes` each (trace_text.h).
  std::vector<std::string> Recent(const RecentRequest& request) const;

  // Rank 0 writes to `path` itself, any other rank to a file beside it ("t.rank2.json" for
  // "t.json"). `later`: this is not the first view. Ranks may have changed since that one, so an
  // existing file is not overwritten but a new one is made ("t.rank2-2.json"). RM_ERR_INVALID: a
  // file is being recorded already, or there can be no such file, or it can't be opened in time.
  Status Start(const std::string& path, bool later, const Process& process);
  // Returns when all is written. Does nothing if no file is recorded. RM_ERR_INTERNAL names the
  // file: not everything could be written, or the file takes nothing until the deadline and is
  // given up.
  Status Stop(Clock::time_point deadline);
  // The same; waits no longer than kPatience.
  Status Stop() { return Stop(Clock::now() + kPatience); }
  bool on() const { return on_.load(std::memory_order_relaxed) || keeps_recent(); }
  // How many timelines were started, the one in memory included.
  uint64_t number() const { return number_.load(std::memory_order_relaxed); }

  // `fill(Event*)` sets all fields of an event; not called when nothing is recorded.
  template <typename Fill>
  void Record(Fill fill) {
    RecentEvents* const recent = recent_.load(std::memory_order_acquire);
    const bool writes = on_.load(std::memory_order_acquire);
    if (recent == nullptr) {
      if (writes) queue_.load(std::memory_order_acquire)->Push(fill);
      return;
    }
    fill(&newest_);
    recent->Push(newest_);
    if (!writes) return;
    queue_.load(std::memory_order_acquire)->Push([this](Event* event) { *event = newest_; });
  }

  static constexpr size_t kTextBytes = 32 << 10;
  static constexpr std::chrono::seconds kPatience{30};
  static constexpr std::chrono::seconds kPatienceWithOpening{10};

 private:
  static constexpr size_t kQueuedEvents = 16384;
  static constexpr size_t kRecentEvents = 16384;

  const std::chrono::milliseconds opening_;
  std::atomic<bool> on_{false};
  std::atomic<uint64_t> number_{0};
  // Points to the newest of queues_. Not null when on_ has been set for the first time.
  std::atomic<EventQueue*> queue_{nullptr};
  Event newest_;                                // used by the recording thread alone
  std::atomic<RecentEvents*> recent_{nullptr};  // points to what kept_recent_ owns

  sync::Mutex mu_;  // one Start() or Stop() at a time
  std::unique_ptr<RecentEvents> kept_recent_ GUARDED_BY(mu_);
  std::unique_ptr<TraceWriter> writer_ GUARDED_BY(mu_);  // null: no file is recorded
  // The first serves all files, until one is given up: its writer keeps the queue. All are kept,
  // because a Record() that has begun before Stop() may still use one.
  std::vector<std::shared_ptr<EventQueue>> queues_ GUARDED_BY(mu_);
  bool needs_queue_ GUARDED_BY(mu_) = true;
};

}  // namespace ringmaster::timeline
