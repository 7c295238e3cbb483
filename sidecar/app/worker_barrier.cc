#include "sidecar/app/worker_barrier.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {

// A worker that never got a view, by us or by a forerunner of this sidecar, has nothing to stop.
bool WorkerBarrier::MayUse(const WorkerProcess& worker, Epoch epoch, const PodView& view) const {
  if (worker.standby() || worker.views.stopped() >= epoch || without_.Has(GlueClause::kAllStopped))
    return false;
  const bool unheard = !worker.connection.greeted() && view.Lists(worker);
  return worker.views.HasHadView() || (unheard && !without_.Has(GlueClause::kUnheardMayUse));
}

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
    const bool stands =
        worker.views.boundary() >= armed_ || without_.Has(GlueClause::kAllAtBoundary);
    if (view.Lists(worker) && !stands) return std::nullopt;
  }
  return std::exchange(armed_, 0);
}

}  // namespace ringmaster::app
