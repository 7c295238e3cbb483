// What an engine reports about its views; the sidecar hears it.
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
  // Answers Engine::PostStop(): nothing runs any more in views up to this epoch.
  virtual void OnStopped(uint64_t epoch) = 0;
  // The view's communicator is connected.
  virtual void OnInstalled(uint64_t epoch, double connect_seconds) = 0;
  // This worker stands at the boundary after `step` completed steps. May come again for the same
  // boundary.
  virtual void OnBoundary(uint64_t epoch, uint64_t step) = 0;
  // The rank is suspected to be dead.
  virtual void OnSuspect(uint64_t epoch, int rank, const std::string& why) = 0;
  // The view broke at this worker, or could not be connected, and the sidecar has not told it to
  // stop: only another view helps. `rank`: the other end of a link that broke although both ends
  // live; -1: that is not known, or a rank is suspected.
  virtual void OnBroken(uint64_t epoch, int rank, const std::string& why) = 0;
  // The first operation of the new view is done. `step`: the steps that are complete; `resumed`:
  // how many will be when the operations that were interrupted are done, from where the survivors
  // go on.
  virtual void OnRebuilt(const RebuildTimes& times, uint64_t step, uint64_t resumed) = 0;
  // This worker was let in when its user had given up waiting for that, so it can't get the job's
  // state. Its part in the job has ended; it must not be in the next view.
  virtual void OnAbandoned(uint64_t epoch) = 0;
  // All ranks of this view have called rm_shutdown: they rest.
  virtual void OnShutDown(uint64_t epoch) = 0;
  // This rank reports operations that wait for ranks which don't ask for them. Each call has all
  // that it reports; there is a call each time they change. Empty: none waits any more, because the
  // ranks have asked for it (`come`) or because the view is over.
  virtual void OnStalls(const std::vector<job::Stall>& stalls, bool come) = 0;
};

}  // namespace ringmaster::engine
