// What the processes of a drill share: a piece of memory that was mapped before they were started.
//
// Thread rule: any process, any thread; all is atomic, or written before what tells of it.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace ringmaster::gpu_test {

constexpr int kMostRanks = 8;
constexpr int kMostViews = 8;
constexpr size_t kMostBytes = 16384;  // that a rank says at a time

// Of one view: where its ranks lay what they say, and wait for each other.
struct Meeting {
  std::atomic<int> arrived{0};
  std::atomic<uint64_t> round{0};
  alignas(16) std::byte said[kMostRanks][kMostBytes];
};

struct DrillBoard {
  std::atomic<uint64_t> aborted_epoch{0};  // views up to this one are over
  std::atomic<int> wrong{0};
  std::atomic<int> in_kernel{0};         // ranks that have begun what the victim does not come to
  std::atomic<int64_t> killed_at{0};     // the victim's last word: of steady_clock
  std::atomic<uint64_t> dying_epoch{0};  // of the victim's view
  std::atomic<int> nccl{0}, cuda{0}, devices{0};  // versions, and how many GPUs there are
  Meeting views[kMostViews];

  static DrillBoard* Map() {
    void* at = mmap(nullptr, sizeof(DrillBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                    -1, 0);
    return at == MAP_FAILED ? nullptr : new (at) DrillBoard;
  }
};

static_assert(std::atomic<uint64_t>::is_always_lock_free, "it is shared between processes");

}  // namespace ringmaster::gpu_test
