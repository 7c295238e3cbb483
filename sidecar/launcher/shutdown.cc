#include "sidecar/launcher/shutdown.h"

#include <algorithm>
#include <utility>

namespace ringmaster::launcher {

bool Shutdown::Terminate(TimePoint now, std::chrono::milliseconds patience, SidecarIs sidecar) {
  if (std::exchange(terminating_, true)) return false;
  patient_until_ = now + patience;
  const bool returns = sidecar == SidecarIs::kAway;
  drain_until_ = returns ? std::min<TimePoint>(now + kSidecarReturns, patient_until_) : now;
  if (sidecar == SidecarIs::kThere) SidecarFound();
  return true;
}

void Shutdown::SidecarFound() {
  if (!drain_until_) return;  // nothing ends it yet, or it was too late
  drains_ = true;
  drain_until_ = patient_until_;
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
