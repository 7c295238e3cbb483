// What rm_init takes from the environment (docs/contracts.md, section 1): the only place of the
// library that reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ringmaster/status.h"

namespace ringmaster::elastic {

struct WorkerOptions {
  std::string socket;  // of the sidecar; empty: a world of one
  std::string job;     // uid
  int slot = 0;
  uint64_t incarnation = 1;
  bool standby = false;
  std::string bind = "127.0.0.1";
  bool shared_memory = true;
  size_t fusion_bytes = size_t{64} << 20;
};

// RM_ERR_INVALID names the variable, its value and what is allowed.
Status OptionsFromEnvironment(WorkerOptions* options);

}  // namespace ringmaster::elastic
