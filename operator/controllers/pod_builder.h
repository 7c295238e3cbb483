// Builds the worker pod of a job. A pure function on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/api/horovod_job.h"
#include "operator/controllers/pod_options.h"

namespace ringmaster::controllers {

// Sets owner reference, labels, init container, sidecar, the user's containers with the worker's
// command wrapped by the launcher, the environment of docs/contracts.md section 1, and volumes.
nlohmann::json BuildPod(const api::HorovodJob& job, int index, const PodOptions& options);

}  // namespace ringmaster::controllers
