// What an engine is made of and tells: its options, its listener, and the points where tests
// may stop it.
//
// Thread rule: the listener and on_point are called on the engine's thread, without locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/host_communicator.h"
#include "collectives/engine/rebuild_timer.h"
#include "collectives/engine/stall_watch.h"
#include "collectives/engine/state_registry.h"
#include "collectives/timeline/timeline.h"
#include "common/job/stall.h"

namespace ringmaster::engine {

class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void OnStopped(uint64_t epoch) = 0;
  virtual void OnInstalled(uint64_t epoch, double connect_seconds) = 0;
  virtual void OnBoundary(uint64_t epoch, uint64_t step) = 0;
  virtual void OnSuspect(uint64_t epoch, int rank, const std::string& why) = 0;
  // The view broke here, or could not be connected, and nobody has told this worker to stop: only
  // another view helps. `rank`: the other end of a link that broke though both live; -1: it is not
  // known which, or somebody is suspected instead.
  virtual void OnBroken(uint64_t epoch, int rank, const std::string& why) = 0;
  // `step`: completed so far; `resumed`: how many will be once the operations that were interrupted
  // are done, so what the survivors go on from.
  virtual void OnRebuilt(const RebuildTimes& times, uint64_t step, uint64_t resumed) = 0;
  virtual void OnFinished(uint64_t epoch) = 0;
  // What waits in this view for ranks that don't come, as this rank is the one to tell: all of it,
  // each time that it changes. Empty: nothing any more, because the ranks have `come`, or because
  // the view is over.
  virtual void OnStalls(const std::vector<job::Stall>& stalls, bool come) = 0;
};

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
