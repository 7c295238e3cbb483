// What an engine is made of: its options, and the points where tests may stop it.
//
// Thread rule: on_point is called on the engine's thread, without locks.
#pragma once

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

// Points at which a test may stop a rank, in the order of a round. `detail`: the operation's number
// where there is one.
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
  size_t fusion_bytes = size_t{64} << 20;
  std::function<void(FaultPoint, uint64_t detail)> on_point;  // tests; empty: none
  StallLimits stall = {};
  timeline::Timeline* timeline = nullptr;  // null: none
  DirectSizes direct = {};
  // What moves the bytes; empty: CpuBackend, with `direct`.
  std::function<std::unique_ptr<Backend>()> make_backend = {};

  void Reach(FaultPoint point, uint64_t detail = 0) const {
    if (on_point) on_point(point, detail);
  }
};

}  // namespace ringmaster::engine
