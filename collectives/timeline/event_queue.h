// The events on their way from the thread that records them to the one that writes them: a ring of
// slots without locks, so that recording costs no more than a copy. An event that comes while the
// ring is full is counted and dropped: the recording thread never waits.
//
// Thread rule: Push() by one thread, Pop() by one other.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "collectives/timeline/event.h"

namespace ringmaster::timeline {

class EventQueue {
 public:
  explicit EventQueue(size_t capacity) : slots_(capacity) {}

  // `fill(Event*)` sets every field of the slot it is given; the slot's strings keep their memory.
  template <typename Fill>
  void Push(Fill fill) {
    const size_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_.load(std::memory_order_acquire) == slots_.size()) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    fill(&slots_[at % slots_.size()]);
    pushed_.store(at + 1, std::memory_order_release);
  }
  // Calls `use(const Event&)` for each event that is there.
  template <typename Use>
  void Pop(Use use) {
    size_t at = popped_.load(std::memory_order_relaxed);
    for (const size_t end = pushed_.load(std::memory_order_acquire); at != end; ++at) {
      use(std::as_const(slots_[at % slots_.size()]));
      popped_.store(at + 1, std::memory_order_release);
    }
  }
  // How many events were dropped since the last call.
  size_t TakeDropped() { return dropped_.exchange(0, std::memory_order_relaxed); }

 private:
  std::vector<Event> slots_;
  alignas(64) std::atomic<size_t> pushed_{0};
  alignas(64) std::atomic<size_t> popped_{0};
  std::atomic<size_t> dropped_{0};
};

}  // namespace ringmaster::timeline
