#include "collectives/transport/view_death.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace ringmaster::transport {
namespace {

// The longest sleep: so long can a lost wake-up, or the death of a peer in shared memory, stay
// unnoticed.
constexpr long kSleepNanos = 2'000'000;

uint32_t* LowerHalf(Flag* flag) { return reinterpret_cast<uint32_t*>(&flag->word); }

}  // namespace

ViewDeath::ViewDeath() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Status ViewDeath::status() const {
  sync::MutexLock lock(&mu_);
  return status_;
}

bool ViewDeath::Die(const std::string& why) {
  {
    sync::MutexLock lock(&mu_);
    if (!status_.ok()) return false;
    status_ = Status(RM_ERR_EPOCH_MOVED, why);
    dead_.store(true, std::memory_order_seq_cst);
  }
  uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof(one));
  if (Flag* flag = sleeping_on_.load(std::memory_order_seq_cst)) {
    syscall(SYS_futex, LowerHalf(flag), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  return true;
}

Status ViewDeath::SleepOn(Flag* flag, uint64_t tag, uint64_t count,
                          const std::function<Status()>& check) {
  timespec limit{0, kSleepNanos};
  Status result;
  // Die() sets `dead_` and then reads `sleeping_on_`; this function sets `sleeping_on_` and then
  // reads `dead_`. So one of the two sees the other: Die() wakes this sleep, or there is none.
  sleeping_on_.store(flag, std::memory_order_seq_cst);
  while (true) {
    result = dead() ? status() : check();
    if (!result.ok()) {
      // A peer raises its flag before it leaves, so one that has left may have done both just now.
      if (Reached(*flag, tag, count)) result = Status();
      break;
    }
    flag->waiting.store(1, std::memory_order_seq_cst);
    uint64_t word = flag->word.load(std::memory_order_seq_cst);
    if (Reached(*flag, tag, count)) break;
    if (dead()) continue;
    syscall(SYS_futex, LowerHalf(flag), FUTEX_WAIT, static_cast<uint32_t>(word), &limit, nullptr,
            0);
    if (Reached(*flag, tag, count)) break;
  }
  sleeping_on_.store(nullptr, std::memory_order_seq_cst);
  return result;
}

}  // namespace ringmaster::transport
