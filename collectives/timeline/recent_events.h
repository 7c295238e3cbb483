// The newest events of a worker, in memory: a ring without locks in which a new event takes the
// place of the oldest one. A thread that reads it while another writes leaves out events that are
// overwritten meanwhile.
//
// Thread rule: Push() by one thread; Since() from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "collectives/timeline/event.h"

namespace ringmaster::timeline {

class RecentEvents {
 public:
  // Of a longer name only the end is kept, because the ends of names tell tensors apart.
  static constexpr size_t kLongestName = 64;

  // `capacity`: a power of two, because the slot of an event is found with a bit mask.
  explicit RecentEvents(size_t capacity) : slots_(capacity) {}

  void Push(const Event& event);
  // The events that had not ended before `since`, the last recorded first.
  std::vector<Event> Since(Clock::time_point since) const;

 private:
  static constexpr size_t kNumbers = std::tuple_size_v<decltype(Event::numbers)>;

  // The parts of an event as words of a slot. The words are atomic, so a copy that is made while
  // the slot is overwritten is no data race; `turn` tells that it is no whole event.
  struct Words {
    enum : size_t { kBegin, kEnd, kWhat, kRowAndLength, kKeys };
    static constexpr size_t kValues = kKeys + kNumbers;
    static constexpr size_t kName = kValues + kNumbers;
    static constexpr size_t kCount = kName + kLongestName / sizeof(uint64_t);
  };
  struct Slot {
    // 2n + 1 while the event of turn n is written, 2n + 2 when it is complete.
    std::atomic<uint64_t> turn{0};
    std::array<std::atomic<uint64_t>, Words::kCount> words{};
  };

  // Copies the event of this turn. False: it has been overwritten.
  bool Read(uint64_t turn, Event* event) const;

  std::vector<Slot> slots_;
  std::atomic<uint64_t> pushed_{0};
};

}  // namespace ringmaster::timeline
