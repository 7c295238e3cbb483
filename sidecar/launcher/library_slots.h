// The slots of a pod whose processes use our library, which speaks to the sidecar itself.
//
// Such a process goes on when the world changes. One that dies is started again in its slot, at
// once or a little later, or a standby takes the slot. (Where the processes' collectives are not
// ours: foreign_slots.h.)
// Owns when the next standby starts. Thread rule: the launcher's one thread.
#pragma once

#include <optional>
#include <utility>

#include "sidecar/launcher/children.h"
#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/exit_policy.h"
#include "sidecar/launcher/pod_parts.h"
#include "sidecar/launcher/standby_schedule.h"

namespace ringmaster::launcher {

class LibrarySlots {
 public:
  explicit LibrarySlots(PodParts parts) : parts_(std::move(parts)) {}

  // Starts a process in each slot, and a standby where the job wants one.
  void Begin();
  // Starts what has waited for this moment.
  void StartDue(TimePoint now);
  // When the next standby is due. Restarts are due as the slots say.
  std::optional<TimePoint> NextWake() const { return standby_.NextWake(); }

  // The sidecar hears of it before anything slow happens.
  void OnExit(const ChildExit& exit);
  // No standby starts any more.
  void OnEnding() { standby_.Cancel(); }

 private:
  void OnStandbyExit(const ChildExit& exit);
  void OnWorkerExit(const ChildExit& exit, const ExitDecision& decision);
  void Restart(int slot_index, TimePoint began);
  bool PromoteStandby(int slot_index);
  void StartWorker(int slot_index);
  void OnFailedStart(int slot_index, const StartedProcess& failed);
  void StartStandby();

  const PodParts parts_;
  StandbySchedule standby_;
};

}  // namespace ringmaster::launcher
