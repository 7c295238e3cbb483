// What this pod's workers tell of tensors that wait for ranks (common/job/stall.h), with the names
// of those ranks' pods.
//
// Pure.
#pragma once

#include <vector>

#include "common/job/stall.h"
#include "common/membership/view.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

// Of those workers that are in `view`; null: of none. `slots`: workers of a pod.
std::vector<job::Stall> StallsIn(const membership::View* view,
                                 const std::vector<WorkerProcess>& workers, int slots);
int CountTensors(const std::vector<job::Stall>& stalls);

}  // namespace ringmaster::app
