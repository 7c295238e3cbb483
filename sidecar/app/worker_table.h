// The processes of this pod, as the launcher and the workers themselves report them over the
// worker link.
//
// It takes their frames. The parts keep the state: WorkerProcesses (which processes live, and what
// they have said), LauncherPeer, WorkerOrders (what the membership wants of them), WorkerWatch
// (which of them are silent), PodGpus (the health of their GPUs) and WorkerTimelines (what they
// have done in the last seconds). No sockets, no clock: frames go out by a function, time is handed
// in. Thread rule: the sidecar's loop only. Callbacks may call back in.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/pod_gpus.h"
#include "sidecar/app/worker_orders.h"
#include "sidecar/app/worker_process.h"
#include "sidecar/app/worker_processes.h"
#include "sidecar/app/worker_table_callbacks.h"
#include "sidecar/app/worker_timelines.h"
#include "sidecar/app/worker_watch.h"

namespace ringmaster::app {

class WorkerTable {
 public:
  WorkerTable(const WorkerTableOptions& options, WorkerTableCallbacks callbacks);

  // ---- From the link server. `peer_pid`: see LinkServer::PeerPid.
  void OnHello(uint64_t connection, bool launcher, const nlohmann::json& hello, int peer_pid,
               SteadyTime now);
  void OnFrame(uint64_t connection, const nlohmann::json& frame, SteadyTime now);
  void OnClosed(uint64_t connection, SteadyTime now);
  // Looks after those whose socket closed and those that went silent.
  void Tick(SteadyTime now);
  // When Tick is needed at the latest, if sooner than it comes anyway.
  std::optional<SteadyTime> NextWake() const { return watch_.NextWake(view()); }

  std::chrono::milliseconds fence() const { return options_.fence; }

  WorkerOrders& orders() { return orders_; }
  const WorkerOrders& orders() const { return orders_; }
  LauncherPeer& launcher() { return launcher_; }
  const LauncherPeer& launcher() const { return launcher_; }
  const WorkerProcesses& processes() const { return processes_; }
  const PodGpus& gpus() const { return gpus_; }
  WorkerTimelines& timelines() { return timelines_; }
  const PodView& view() const { return orders_.view(); }

 private:
  void OnLauncherHello(uint64_t connection, const nlohmann::json& hello, SteadyTime now);
  void OnWorkerHello(uint64_t connection, const nlohmann::json& frame, int peer_pid,
                     SteadyTime now);
  void OnLauncherFrame(const nlohmann::json& frame, SteadyTime now);
  void CheckRest(const job::WorkerExit& exit);
  void OnEnter(WorkerProcess* worker, const nlohmann::json& frame);
  void OnWorkerFrame(WorkerProcess* worker, const nlohmann::json& frame);

  const WorkerTableOptions options_;
  const WorkerTableCallbacks callbacks_;
  WorkerProcesses processes_;
  LauncherPeer launcher_;
  WorkerOrders orders_;
  WorkerWatch watch_;
  WorkerTimelines timelines_;
  PodGpus gpus_;
  Epoch ran_ = 0;
};

}  // namespace ringmaster::app
