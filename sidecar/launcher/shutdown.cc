#include "sidecar/launcher/shutdown.h"

#include <algorithm>
#include <utility>

namespace ringmaster::launcher {

bool Shutdown::Terminate(TimePoint now, std::chrono::milliseconds patience) {
  if (std::exchange(terminating_, true)) return false;
  drain_until_ = now + patience;
  return true;
}

bool Shutdown::Stop(TimePoint now, std::chrono::milliseconds grace) {
  const TimePoint kill_at = now + grace;
  if (stopping()) {
    kill_at_ = std::min(*kill_at_, kill_at);
    return false;
  }
  kill_at_ = kill_at;
  drain_until_.reset();
  return true;
}

bool Shutdown::TakeKill(TimePoint now) {
  if (!kill_at_ || now < *kill_at_) return false;
  kill_at_ = now + std::chrono::seconds(1);
  return true;
}

}  // namespace ringmaster::launcher
