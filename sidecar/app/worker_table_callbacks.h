// What the pod's own workers bring about, for those who look after them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/job/rebuild.h"
#include "common/job/worker_exit.h"
#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

struct WorkerTableCallbacks {
  SendFrame send;
  std::function<void(uint64_t connection, const std::string& message)> refuse;
  std::function<void(uint64_t connection)> drop;  // closes it without a word
  std::function<void()> changed;                  // which workers live, or which are ready
  std::function<void(Epoch)> stopped;             // all have stopped using views up to this one
  std::function<void(Epoch)> boundary;            // all stand at the boundary of this view
  // The first operation of a view has completed there: epoch, seconds and steps_resumed are set.
  std::function<void(const job::Rebuild&)> rebuilt;
  // An operation of this view has completed; said once, by whichever worker's ping is the first.
  std::function<void(Epoch)> ran;
  std::function<void(Epoch, int rank, const std::string& reason)> suspects;
  // The view is broken for a worker; see PeerMonitor::OnWorkerBroken.
  std::function<void(Epoch, int rank, const std::string& reason)> broken;
  std::function<void(Epoch)> finished;  // all ranks have shut down, and none begins again
  std::function<void(const job::WorkerExit&)> exited;
  std::function<void()> terminate;  // SIGTERM came to the worker container
};

}  // namespace ringmaster::app
