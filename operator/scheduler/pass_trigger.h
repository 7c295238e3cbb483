// Tells when a pass over the waiting jobs is due (admission.h).
//
// Pure. The capacity outlives it.
#pragma once

#include <cstdint>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

class PassTrigger {
 public:
  explicit PassTrigger(const Capacity& capacity) : capacity_(capacity) {}
  PassTrigger(const PassTrigger&) = delete;
  PassTrigger& operator=(const PassTrigger&) = delete;

  // Something has changed that the capacity does not show.
  void Ask() { asked_ = true; }
  // `jobs_wait`: growth alone is of use to nobody where no job waits.
  bool IsDue(bool jobs_wait) const {
    return asked_ || again_ || HasLost() || (HasGrown() && jobs_wait);
  }
  // Something has changed since the last pass began, other than by that pass.
  bool HasChanged() const { return asked_ || HasLost() || HasGrown(); }
  // Held places were lost since the last pass began.
  bool HasLost() const { return capacity_.losses() != losses_seen_; }
  // A pass begins, which looks at everything that has changed until now.
  void BeginPass();
  // `again`: the pass has left jobs undecided.
  void EndPass(bool again) { again_ = again; }

 private:
  bool HasGrown() const { return capacity_.growth() != growth_seen_; }

  const Capacity& capacity_;
  bool asked_ = false;             // a pass was requested since the last one began
  bool again_ = false;             // the last pass has left jobs undecided
  std::uint64_t growth_seen_ = 0;  // by the last pass
  std::uint64_t losses_seen_ = 0;
};

}  // namespace ringmaster::scheduler
