// The slots of the pod: which process runs in each, and when the next one starts there.
//
// Plain data; time is handed in.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/restart_backoff.h"
#include "sidecar/launcher/start_retries.h"

namespace ringmaster::launcher {

// A worker may exit 0 before the sidecar's `finish` is read.
inline constexpr std::chrono::seconds kFinishGrace{1};
// A sidecar that is away, or has just come back, has yet to hear from others that the job ends.
inline constexpr std::chrono::seconds kSidecarAway{30}, kSidecarBack{10};
inline constexpr std::chrono::milliseconds kLookAgain{100};

struct Slot {
  uint64_t incarnation = 0;
  pid_t pid = 0;  // 0: none runs
  RestartBackoff backoff;
  StartRetries retries;
  bool closed = false;  // nothing will run here again
  std::optional<TimePoint> restart_at;
  std::optional<TimePoint> finish_by;  // it exited 0; by then the job finishes
  bool unheard = false;                // it exited 0 and the sidecar could not hear of it
};

// The worker of a slot exited 0, and it was not heard in time that the job finishes.
struct Unfinished {
  int slot = 0;
  bool unheard = false;  // perhaps it finishes, and the sidecar could not say so
  friend bool operator==(const Unfinished&, const Unfinished&) = default;
};

class Slots {
 public:
  explicit Slots(int count) : slots_(static_cast<size_t>(count)) {}

  Slot& operator[](int index) { return slots_[static_cast<size_t>(index)]; }
  // No slot starts a process any more; those that run may go on.
  void CloseIdle();
  void CloseAll();
  bool AllClosed() const;
  // No process runs, and none is to be started.
  bool AllIdle() const;
  // The slot's worker exited 0: the job is about to finish, which the sidecar says within `grace`.
  void ExitedWell(int slot, TimePoint now, std::chrono::seconds grace = kFinishGrace);
  // The connection to the sidecar has broken, or has been made, perhaps for the first time. Before
  // that a worker can't have agreed to anything.
  void SidecarLost(TimePoint now);
  void SidecarFound(TimePoint now);
  // Whether the sidecar has read everything that was sent to it; call it before TakeUnfinished. One
  // that stands still keeps its connection, and hears as little as one that is away.
  void SidecarReads(bool everything, TimePoint now);
  // Slots whose time has come; they are not due again.
  std::vector<int> TakeRestarts(TimePoint now);
  // While the sidecar is away and other slots are at work, nobody can know that a worker that
  // exited 0 was wrong, so none is unfinished.
  std::vector<Unfinished> TakeUnfinished(TimePoint now);
  std::optional<TimePoint> NextWake() const;

 private:
  std::vector<Slot> slots_;
  bool sidecar_lost_ = false;  // there was a connection to it, or it stands still
  // By then the workers have connected to the sidecar again, too.
  std::optional<TimePoint> found_again_by_;
  std::optional<TimePoint> look_at_;  // it stands still: when to see whether it reads again
};

// True once its time has come; it is reset then.
bool TakeDue(std::optional<TimePoint>* at, TimePoint now);
// The earlier one, if any.
std::optional<TimePoint> Earlier(std::optional<TimePoint> a, std::optional<TimePoint> b);

}  // namespace ringmaster::launcher
