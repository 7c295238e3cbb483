// The options of an engine, and the points at which tests may stop it.
//
// Thread rule: on_point is called on the engine's thread, without locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/engine_listener.h"
#include "collectives/engine/host_communicator.h"
#include "collectives/engine/stall_watch.h"
#include "collectives/engine/state_registry.h"
#include "collectives/timeline/timeline.h"

namespace ringmaster::engine {

// Points at which a test may stop a rank: those of a round, in order, and then those of a recovery.
enum class FaultPoint {
  kBeforeNegotiation,
  kAfterNegotiation,
  kBeforeExecute,
  kAfterExecute,
  kAfterPublish,
  kAtBoundary,
  kBeforeExchange,
  kAfterExchange,
  kAfterHandover,
  kAfterSync
};

struct EngineOptions {
  CommunicatorFactory* communicators = nullptr;
  EngineListener* listener = nullptr;
  StateRegistry* state = nullptr;
  bool has_state = true;  // false: a joiner
  // Up to this size requests are packed into one buffer; the lowest value of all ranks counts.
  size_t fusion_bytes = size_t{64} << 20;
  // For tests; empty: none. `detail`: the number of the operation, or of steps at a boundary; 0
  // where there is neither.
  std::function<void(FaultPoint, uint64_t detail)> on_point;
  // How long a joiner that is let in waits for its user, who may have given up waiting for that.
  std::chrono::milliseconds user_patience = std::chrono::seconds(10);
  StallLimits stall = {};
  timeline::Timeline* timeline = nullptr;  // null: none
  DirectSizes direct = {};
  // Makes what moves the bytes; empty: a CpuBackend, with `direct`.
  std::function<std::unique_ptr<Backend>()> make_backend = {};

  void Reach(FaultPoint point, uint64_t detail = 0) const {
    if (on_point) on_point(point, detail);
  }
};

}  // namespace ringmaster::engine
