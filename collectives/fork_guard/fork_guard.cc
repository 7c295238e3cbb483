#include "collectives/fork_guard/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

namespace ringmaster::fork_guard {
namespace {

constexpr int kMost = 1 << 20;  // the kernel's default limit of descriptors (fs.nr_open)
constexpr int kWordBits = 64;

std::array<std::atomic<uint64_t>, kMost / kWordBits> owned;
std::atomic<bool> in_child{false};

void AfterForkInChild() {
  in_child = true;
  for (size_t word = 0; word < owned.size(); ++word) {
    for (uint64_t bits = owned[word].exchange(0); bits != 0; bits &= bits - 1) {
      close(static_cast<int>(word) * kWordBits + std::countr_zero(bits));
    }
  }
}

}  // namespace

void Own(int fd) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, AfterForkInChild); });
  if (fd < 0 || fd >= kMost) return;
  owned[fd / kWordBits] |= uint64_t{1} << fd % kWordBits;
}

void Disown(int fd) {
  if (fd < 0 || fd >= kMost) return;
  owned[fd / kWordBits] &= ~(uint64_t{1} << fd % kWordBits);
}

bool InChild() { return in_child; }

}  // namespace ringmaster::fork_guard
