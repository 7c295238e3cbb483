#include "sidecar/app/worker_barrier.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {
namespace {

// A worker that never got a view, by us or by a forerunner of this sidecar, has nothing to stop.
bool MayUse(const WorkerProcess& worker, Epoch epoch, const PodView& view) {
  if (worker.standby() || worker.stopped >= epoch) return false;
  return worker.sent > 0 || worker.installed > 0 || (!worker.greeted && view.Lists(worker));
}

}  // namespace

void WorkerBarrier::Stop(Epoch epoch) {
  stopping_ = std::max(stopping_, epoch);
  if (armed_ <= epoch) armed_ = 0;
}

std::optional<Epoch> WorkerBarrier::TakeStopped(const std::vector<WorkerProcess>& workers,
                                                const PodView& view) {
  if (stopping_ == 0) return std::nullopt;
  for (const WorkerProcess& worker : workers) {
    if (MayUse(worker, stopping_, view)) return std::nullopt;
  }
  return std::exchange(stopping_, 0);
}

std::optional<Epoch> WorkerBarrier::TakeBoundary(const std::vector<WorkerProcess>& workers,
                                                 const PodView& view) {
  if (armed_ == 0) return std::nullopt;
  for (const WorkerProcess& worker : workers) {
    if (view.Lists(worker) && worker.boundary < armed_) return std::nullopt;
  }
  return std::exchange(armed_, 0);
}

}  // namespace ringmaster::app
