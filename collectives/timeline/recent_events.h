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
  // Of a longer name the end is kept: it tells tensors apart.
  static constexpr size_t kLongestName = 64;

  // `capacity`: a power of two, which the places of the ring are found by.
  explicit RecentEvents(size_t capacity) : slots_(capacity) {}

  void Push(const Event& event);
  // Those that had not ended before `since`, the newest first: in the order of their recording.
  std::vector<Event> Since(Clock::time_point since) const;

 private:
  static constexpr size_t kNumbers = std::tuple_size_v<decltype(Event::numbers)>;

  // What stands in a slot, as words: a copy may be torn, which `turn` tells, and is no data race.
  struct Words {
    enum : size_t { kBegin, kEnd, kWhat, kRowAndLength, kKeys };
    static constexpr size_t kValues = kKeys + kNumbers;
    static constexpr size_t kName = kValues + kNumbers;
    static constexpr size_t kCount = kName + kLongestName / sizeof(uint64_t);
  };
  struct Slot {
    // 2n + 1 while the event of turn n is written, 2n + 2 when it stands there.
    std::atomic<uint64_t> turn{0};
    std::array<std::atomic<uint64_t>, Words::kCount> words{};
  };

  // False: it has been overwritten.
  bool Read(uint64_t turn, Event* event) const;

  std::vector<Slot> slots_;
  std::atomic<uint64_t> pushed_{0};
};

}  // namespace ringmaster::timeline
