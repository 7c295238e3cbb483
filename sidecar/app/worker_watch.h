// Looks after workers of this pod that say nothing: asks the launcher what such a process does, has
// one killed that a signal has stopped, and finds those that count as dead.
//
// A worker that computes for long says nothing either, so silence alone is no reason before the
// fence. Owner: WorkerTable. Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/pod_view.h"
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
  // The launcher's answer: what a process does that it was asked about.
  void OnState(const nlohmann::json& frame, SteadyTime now);

 private:
  void ForgiveOwnSleep(SteadyTime now);
  void AskAboutSilent(SteadyTime now, const PodView& view);

  const WorkerTableOptions* const options_;
  WorkerProcesses* const processes_;
  LauncherPeer* const launcher_;
  std::optional<SteadyTime> ticked_;  // last
};

}  // namespace ringmaster::app
