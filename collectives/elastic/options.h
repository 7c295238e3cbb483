// What rm_init takes from the environment (docs/contracts.md, section 1). No other place of the
// library reads the environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/engine/stall_watch.h"
#include "collectives/process_manager/process_manager.h"
#include "collectives/timeline/timeline.h"
#include "ringmaster/status.h"

namespace ringmaster::elastic {

// What may carry the collectives: spec.collectives.backend or, where no sidecar is, what
// RINGMASTER_BACKEND says.
enum class BackendChoice {
  kAuto,  // NCCL where there is one
  kCpu,   // never the GPU
  kNccl,  // NCCL, or rm_init is refused
  kMpi,   // MPI for tensors in the host's memory, or rm_init is refused; only under its launcher
};

struct WorkerOptions {
  std::string socket;  // of the sidecar; empty: a world of one, or one that mpirun has started
  process_manager::Launch launch;  // where there is no sidecar: who has started this process
  std::string job;                 // uid
  int slot = 0;
  uint64_t incarnation = 1;
  bool standby = false;
  std::string bind = "127.0.0.1";
  bool bind_is_given = false;
  bool shared_memory = true;
  bool encrypt = false;  // whether what goes over TCP is encrypted
  BackendChoice backend = BackendChoice::kAuto;
  std::string mpi_library;  // the plug-in that calls MPI; empty: one beside this library
  size_t fusion_bytes = size_t{64} << 20;
  engine::StallLimits stall{std::chrono::seconds(60)};
  std::string timeline_file;  // empty: none is written from the beginning
  bool keep_recent = true;    // keeps the newest events, for the sidecar's GET /timeline
  bool watch_gpu = true;      // watches the health of the GPU that the worker uses
  // One line for the log for each variable that is set but has no meaning here, or is not followed.
  std::vector<std::string> remarks;
  // Not from the environment: what records the timeline, and the library's version, for the
  // sidecar.
  timeline::Timeline* timeline = nullptr;
  std::string version;
  // Nor from there: for how long a call without a timeout of its own waits for those of whom
  // nothing is heard. Under a sidecar that is the sidecar; elsewhere it is the other ranks.
  std::chrono::milliseconds patience = std::chrono::seconds(600);
};

// RM_ERR_INVALID names the variable, its value and what is allowed.
Status OptionsFromEnvironment(WorkerOptions* options);

}  // namespace ringmaster::elastic
