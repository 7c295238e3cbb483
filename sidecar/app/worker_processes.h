// The living worker processes and standbys of this pod: which slot has which, what each has said,
// and which of them look dead.
//
// It sends nothing and calls nobody. Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/job/worker_exit.h"
#include "common/membership/view.h"
#include "sidecar/app/pod_view.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class WorkerProcesses {
 public:
  explicit WorkerProcesses(int slots) : slots_(slots) {}

  int slots() const { return slots_; }
  std::vector<WorkerProcess>& all() { return processes_; }
  const std::vector<WorkerProcess>& all() const { return processes_; }
  // A pointer is good until a process is added or removed. Null: there is none.
  WorkerProcess* ByConnection(uint64_t connection);
  WorkerProcess* Find(bool standby, int slot, uint64_t incarnation);
  WorkerProcess* Add(int slot, uint64_t incarnation);
  // A worker of the stored view of a restarted sidecar. It counts as living until the launcher
  // doesn't name it, or until its fence has passed without a word of it.
  void AddUnheard(uint32_t slot, uint64_t incarnation, SteadyTime now);
  // The incarnation above this one that has the slot; 0: none.
  uint64_t NewerIncarnation(int slot, uint64_t incarnation) const;

  // The launcher has started it, or names it as running. Null: this pod has no such slot.
  WorkerProcess* Started(const ProcessName& name);
  // The launcher is the workers' parent: a process that it does not name is dead. Returns those
  // that were standbys here and have a slot there, by the incarnations they had as standbys.
  std::vector<uint64_t> KeepOnly(const std::vector<ProcessName>& running);
  // False: it was removed before.
  bool Exited(const job::WorkerExit& exit);
  // Null: it was known, there is no standby, or no such slot.
  WorkerProcess* Promote(int slot, uint64_t incarnation, int64_t pid);
  // Removes and returns those that count as dead. `launcher_lost`: since when the launcher is away.
  std::vector<WorkerProcess> TakeDead(SteadyTime now, std::chrono::milliseconds fence,
                                      std::optional<SteadyTime> launcher_lost);

  // A socket closed, and it is not known yet whether the process has ended: look often.
  bool Doubtful() const;
  bool AnyLiving() const;  // standbys don't count
  std::vector<membership::Worker> Living() const;
  std::vector<uint32_t> MissingSlots() const;  // slots whose worker has not called init()
  bool AllInstalled(const PodView& view) const;

 private:
  // A standby of ours has this slot, the launcher says. False: it is none, or had it before.
  bool TakeSlot(const ProcessName& name);

  const int slots_;
  std::vector<WorkerProcess> processes_;
};

}  // namespace ringmaster::app
