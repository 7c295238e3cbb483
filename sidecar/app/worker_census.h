// Whether every worker process of this pod that may live has been heard of, since this sidecar
// started.
//
// Before that the membership is told of none of them: those that have yet to be heard of would
// count as dead. Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <chrono>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/process_identity.h"
#include "sidecar/app/worker_processes.h"

namespace ringmaster::app {

class WorkerCensus {
 public:
  // `fence`: after which a worker that hears nothing from its sidecar ends itself.
  explicit WorkerCensus(std::chrono::milliseconds fence) : fence_(fence) {}

  // The sidecar starts, with the view of its state file or without.
  void Start(bool with_view, SteadyTime now);
  // Once it is true it stays true.
  bool IsComplete(const WorkerProcesses& processes, const LauncherPeer& launcher, SteadyTime now);
  // A pod without a launcher is known to have none by now, and the census has not been complete.
  bool IsOverdue(SteadyTime now) const;

 private:
  bool MayLack(const WorkerProcesses& processes, const LauncherPeer& launcher,
               SteadyTime now) const;

  const std::chrono::milliseconds fence_;
  SteadyTime started_at_{};
  bool began_with_view_ = false;
  bool complete_ = false;
};

}  // namespace ringmaster::app
