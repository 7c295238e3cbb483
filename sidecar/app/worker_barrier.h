// What the membership waits for from all workers of the pod together: that they have stopped using
// a view, and that they stand at its boundary.
//
// It remembers what was asked and not answered yet; it sends nothing. Thread rule: the sidecar's
// loop only.
#pragma once

#include <optional>
#include <vector>

#include "sidecar/app/glue_clause.h"
#include "sidecar/app/pod_view.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class WorkerBarrier {
 public:
  explicit WorkerBarrier(GlueClauses without = {}) : without_(without) {}

  void Stop(Epoch epoch);
  void Arm(Epoch epoch) { armed_ = epoch; }
  void Disarm() { armed_ = 0; }
  Epoch stopping() const { return stopping_; }  // 0: nothing is waited for
  Epoch armed() const { return armed_; }

  // Whether the answer to Stop() waits for this worker.
  bool WaitsFor(const WorkerProcess& worker, const PodView& view) const {
    return stopping_ != 0 && MayUse(worker, stopping_, view);
  }
  // The answer, once: no worker uses views up to this one any more.
  std::optional<Epoch> TakeStopped(const std::vector<WorkerProcess>& workers, const PodView& view);
  // The answer, once: all workers of the view stand at its boundary.
  std::optional<Epoch> TakeBoundary(const std::vector<WorkerProcess>& workers, const PodView& view);

 private:
  bool MayUse(const WorkerProcess& worker, Epoch epoch, const PodView& view) const;

  const GlueClauses without_;
  Epoch stopping_ = 0, armed_ = 0;
};

}  // namespace ringmaster::app
