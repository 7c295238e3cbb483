// What an engine tells of itself: what becomes of its views, for the sidecar.
//
// Thread rule: called on the engine's thread, without locks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectives/engine/rebuild_timer.h"
#include "common/job/stall.h"

namespace ringmaster::engine {

class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void OnStopped(uint64_t epoch) = 0;
  virtual void OnInstalled(uint64_t epoch, double connect_seconds) = 0;
  virtual void OnBoundary(uint64_t epoch, uint64_t step) = 0;
  virtual void OnSuspect(uint64_t epoch, int rank, const std::string& why) = 0;
  // The view broke at this worker, or could not be connected, and the sidecar has not told it to
  // stop: only another view helps. `rank`: the other end of a link that broke though both ends
  // live; -1: that is not known, or a rank is suspected.
  virtual void OnBroken(uint64_t epoch, int rank, const std::string& why) = 0;
  // `step`: completed so far; `resumed`: how many will be once the operations that were interrupted
  // are done, so what the survivors go on from.
  virtual void OnRebuilt(const RebuildTimes& times, uint64_t step, uint64_t resumed) = 0;
  // All ranks of this view have called rm_shutdown: they rest.
  virtual void OnShutDown(uint64_t epoch) = 0;
  // This rank is the one that reports the operations which wait in this view for ranks that don't
  // ask for them: all of them, each time that they change. Empty: no operation waits any more,
  // because the ranks have `come`, or because the view is over.
  virtual void OnStalls(const std::vector<job::Stall>& stalls, bool come) = 0;
};

}  // namespace ringmaster::engine
