// What the membership wants of "the workers" of this pod, said to each of them as it needs to hear
// it, and the answer when all of them have done it.
//
// Owner: WorkerTable. Thread rule: the sidecar's loop only. Callbacks may call back in.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/worker_barrier.h"
#include "sidecar/app/worker_notifier.h"
#include "sidecar/app/worker_process.h"
#include "sidecar/app/worker_processes.h"
#include "sidecar/app/worker_table_callbacks.h"

namespace ringmaster::app {

class WorkerOrders {
 public:
  // All of them outlive it.
  WorkerOrders(const WorkerTableOptions& options, const WorkerTableCallbacks* callbacks,
               WorkerProcesses* processes, LauncherPeer* launcher);

  // ---- From the membership.
  // Answered by `stopped`, at once if nobody has anything to stop.
  void Stop(Epoch epoch);
  // Answered by `boundary`.
  void Arm(Epoch epoch);
  // That answer is waited for: not all workers have ended a step since.
  bool awaits_boundary() const { return barrier_.armed() != 0; }
  // `armed`: its workers stop at its first boundary, and learn that before they learn the view.
  void Install(ViewPtr view, SteadyTime now, bool armed = false);
  // The stored view of a restarted sidecar: workers listed in it may be using it, until they, the
  // launcher or their fence say otherwise.
  void Restore(ViewPtr view, SteadyTime now);
  // Workers get `left`, the launcher `finish`.
  void Leave(Epoch epoch, const std::string& reason, LauncherPeer::End end);
  // The same for those that are in no view, now and later.
  void LeaveJoiners(Epoch epoch, const std::string& reason);
  // The job can't go on: workers, those that come later too, get `error`.
  void GiveUp(const std::string& message);
  // Ends workers that have been in a view, so that the launcher starts fresh ones.
  void KillUsed(const std::string& reason);
  // It is settled whether workers start the job or join it: those that wait for their `welcome` get
  // it.
  void SettleWelcome();

  // ---- From the table.
  // A worker has said hello: it hears what it has to know.
  void Welcome(WorkerProcess* worker) { notifier_.Welcome(worker, barrier_); }
  // The launcher has given a standby a slot.
  void Promoted(const WorkerProcess& worker);
  // Which workers live has changed, or one of them has stopped or reached the boundary: perhaps it
  // was the last one that was waited for.
  void CheckAnswers();
  // Has workers killed that have been told to stop for long and don't: the thread of such a
  // worker's engine hangs in something that the end of a view does not end, and the whole job waits
  // for it.
  void Tick(SteadyTime now);

  const PodView& view() const { return notifier_.view(); }

 private:
  void ExpectWorkers(SteadyTime now);

  const GlueClauses without_;
  const WorkerTableCallbacks* const callbacks_;
  WorkerProcesses* const processes_;
  LauncherPeer* const launcher_;
  WorkerNotifier notifier_;
  WorkerBarrier barrier_;
  const std::chrono::milliseconds stop_patience_;
  std::chrono::milliseconds stop_waited_{0};  // for the answer to `stop`
  std::optional<SteadyTime> ticked_;          // last
};

}  // namespace ringmaster::app
