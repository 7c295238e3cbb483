// Looks after workers of this pod that stand still: has one killed that a signal has stopped for
// too long, and finds those that count as dead.
//
// The launcher says at once when a signal stops its child. It can't know it of a process below that
// (the child may be a script that starts the worker), so it is asked, too, what a worker does that
// says nothing. Silence alone is no reason before the fence. Owner: WorkerTable. Thread rule: the
// sidecar's loop only; time is handed in.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/pod_view.h"
#include "sidecar/app/process_name.h"
#include "sidecar/app/worker_notifier.h"
#include "sidecar/app/worker_process.h"
#include "sidecar/app/worker_processes.h"

namespace ringmaster::app {

class WorkerWatch {
 public:
  // All of them outlive it.
  WorkerWatch(const WorkerTableOptions* options, WorkerProcesses* processes,
              LauncherPeer* launcher);

  // Removes and returns those that count as dead from now on.
  std::vector<WorkerProcess> Tick(SteadyTime now, const PodView& view);
  // The launcher's word: a signal has stopped a process, or not any more.
  void OnHalt(const ProcessName& name, bool stopped, SteadyTime now);
  // When it is next to be asked about a worker that is stopped; Tick does it.
  std::optional<SteadyTime> NextWake(const PodView& view) const;
  // The launcher's answer: what a process does that it was asked about.
  void OnState(const nlohmann::json& frame, SteadyTime now);

 private:
  void ForgiveOwnSleep(SteadyTime now);
  void AskAboutThoseThatStandStill(SteadyTime now, const PodView& view);
  SteadyTime AskedAt(const WorkerProcess& worker) const;

  const WorkerTableOptions* const options_;
  WorkerProcesses* const processes_;
  LauncherPeer* const launcher_;
  std::optional<SteadyTime> ticked_;  // last
};

}  // namespace ringmaster::app
