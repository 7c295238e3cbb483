// The processes of this pod, as the launcher and the workers themselves report them over the
// worker link.
//
// It takes their frames, and turns what the membership wants of "the workers" into frames. The
// parts keep the state: WorkerProcesses (which processes live, and what they have said),
// LauncherPeer, WorkerNotifier (what workers are told) and WorkerBarrier (what all of them are
// waited for). No sockets, no clock: frames go out by a function, time is handed in. Thread rule:
// the sidecar's loop only. Callbacks may call back in.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/worker_barrier.h"
#include "sidecar/app/worker_notifier.h"
#include "sidecar/app/worker_process.h"
#include "sidecar/app/worker_processes.h"

namespace ringmaster::app {

struct WorkerTableCallbacks {
  SendFrame send;
  std::function<void(uint64_t connection, const std::string& message)> refuse;
  std::function<void()> changed;        // which workers live, or which are ready
  std::function<void(Epoch)> stopped;   // all have stopped using views up to this one
  std::function<void(Epoch)> boundary;  // all stand at the boundary of this view
  // The first operation of a view has completed there: epoch, seconds and steps_resumed are set.
  std::function<void(const job::Rebuild&)> rebuilt;
  // An operation of this view has completed; said once, by whichever worker's ping is the first.
  std::function<void(Epoch)> ran;
  std::function<void(Epoch, int rank, const std::string& reason)> suspects;
  // The view is broken for a worker; see PeerMonitor::OnWorkerBroken.
  std::function<void(Epoch, int rank, const std::string& reason)> broken;
  std::function<void(Epoch)> finished;  // rm_shutdown was agreed by all ranks
  std::function<void(const job::WorkerExit&)> exited;
  std::function<void()> terminate;  // SIGTERM came to the worker container
};

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

  std::chrono::milliseconds fence() const { return options_.fence; }

  // ---- From the membership.
  // Answered by `stopped`, at once if nobody has anything to stop.
  void Stop(Epoch epoch);
  void Arm(Epoch epoch);
  void Install(ViewPtr view, SteadyTime now);
  // The stored view of a restarted sidecar: workers listed in it may be using it, until they, the
  // launcher or their fence say otherwise.
  void Restore(ViewPtr view, SteadyTime now);
  // Workers get `left`, the launcher `finish`.
  void Leave(Epoch epoch, const std::string& reason);
  // The same for those that are in no view, now and later.
  void LeaveJoiners(Epoch epoch, const std::string& reason);
  // The job can't go on: workers, those that come later too, get `error`.
  void GiveUp(const std::string& message);
  // Ends workers that have been in a view, so that the launcher starts fresh ones.
  void KillUsed(const std::string& reason);
  // It is settled whether workers start the job or join it: those that wait for their `welcome` get
  // it.
  void SettleWelcome();

  LauncherPeer& launcher() { return launcher_; }
  const LauncherPeer& launcher() const { return launcher_; }
  const WorkerProcesses& processes() const { return processes_; }
  const PodView& view() const { return notifier_.view(); }

 private:
  void ExpectWorkers(SteadyTime now);
  void OnLauncherHello(uint64_t connection, const nlohmann::json& hello);
  void OnWorkerHello(uint64_t connection, const nlohmann::json& hello, int peer_pid,
                     SteadyTime now);
  void OnLauncherFrame(const nlohmann::json& frame, SteadyTime now);
  void OnEnter(WorkerProcess* worker, const nlohmann::json& frame);
  void OnState(const nlohmann::json& frame, SteadyTime now);
  void OnWorkerFrame(WorkerProcess* worker, const nlohmann::json& frame);
  // It will not use the view any more that this pod still lists it in.
  bool HasGivenUp(const WorkerProcess& worker) const;
  void Replace(const WorkerProcess& worker);
  void ForgiveOwnSleep(SteadyTime now);
  void LookAfterSilent(SteadyTime now);
  void CheckStopped();
  void CheckBoundary();

  const WorkerTableOptions options_;
  const WorkerTableCallbacks callbacks_;
  WorkerProcesses processes_;
  LauncherPeer launcher_;
  WorkerNotifier notifier_;
  WorkerBarrier barrier_;
  Epoch ran_ = 0;
  std::optional<SteadyTime> ticked_;  // last
};

}  // namespace ringmaster::app
