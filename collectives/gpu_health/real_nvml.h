// NvmlApi of libnvidia-ml.so.1, which comes with NVIDIA's driver.
//
// Thread rule: free functions, any thread.
#pragma once

#include <memory>

#include "collectives/gpu_health/nvml_api.h"
#include "ringmaster/status.h"

namespace ringmaster::gpu_health {

// RM_ERR_UNAVAILABLE: there is no such library, or it lacks a function.
Status LoadNvml(std::shared_ptr<NvmlApi>* out);
// The same of a library with this name.
Status LoadNvmlFrom(const char* name, std::shared_ptr<NvmlApi>* out);

}  // namespace ringmaster::gpu_health
