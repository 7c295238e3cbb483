// What /status shows (docs/contracts.md, section 5).
//
// Pure: a function of the parts it is handed. Thread rule: that of the parts, the sidecar's loop.
#pragma once

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "common/job/worker_exit.h"
#include "common/membership/member.h"
#include "sidecar/app/options.h"
#include "sidecar/app/pod_gpus.h"
#include "sidecar/app/ring_trouble.h"
#include "sidecar/app/training_history.h"
#include "sidecar/app/worker_processes.h"

namespace ringmaster::app {

struct StatusInput {
  const SidecarOptions& options;
  const membership::Member& member;
  const WorkerProcesses& processes;
  const PodGpus& gpus;
  const TrainingHistory& history;
  std::size_t rebuilds = health::RebuildLog::kKeep;  // how many of the newest are shown
  const std::deque<job::WorkerExit>& exits;
  std::vector<BrokenLink> broken_links;
  ViewPtr installed;  // the newest that was handed to the workers
  bool finishing = false;
  bool leaving = false;
  bool operator_connected = false;
};

// Which sidecar tells it: its version, job and pod.
nlohmann::json SidecarIdentity(const SidecarOptions& options);

nlohmann::json StatusDocument(const StatusInput& input);

}  // namespace ringmaster::app
