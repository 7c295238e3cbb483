// The slots of the pod: which process runs in each, and when the next one starts there.
//
// Plain data; time is handed in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/restart_backoff.h"

namespace ringmaster::launcher {

struct Slot {
  uint64_t incarnation = 0;
  pid_t pid = 0;  // 0: none runs
  RestartBackoff backoff;
  bool closed = false;  // nothing will run here again
  std::optional<TimePoint> restart_at;
  std::optional<TimePoint> finish_by;  // it exited 0; by then the job finishes
};

class Slots {
 public:
  explicit Slots(int count) : slots_(static_cast<size_t>(count)) {}

  Slot& operator[](int index) { return slots_[static_cast<size_t>(index)]; }
  // No slot starts a process any more; those that run may go on.
  void CloseIdle();
  void CloseAll();
  bool AllClosed() const;
  // Slots whose time has come; they are not due again.
  std::vector<int> TakeRestarts(TimePoint now);
  std::vector<int> TakeUnfinished(TimePoint now);
  std::optional<TimePoint> NextWake() const;

 private:
  std::vector<Slot> slots_;
};

// True once its time has come; it is reset then.
bool TakeDue(std::optional<TimePoint>* at, TimePoint now);
// The earlier one, if any.
std::optional<TimePoint> Earlier(std::optional<TimePoint> a, std::optional<TimePoint> b);

}  // namespace ringmaster::launcher
