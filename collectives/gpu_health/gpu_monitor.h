// Watches the GPU of this process: waits for Xids, and looks at it every few seconds.
//
// All of NVML is called on a thread of the monitor's own, because any call may hang where the
// driver does. The destructor waits for the thread only for a moment; one that hangs is left to the
// end of the process, and touches nothing but what it shares with nobody.
//
// Thread rule: constructor and destructor on any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "collectives/gpu_health/latest_health.h"
#include "collectives/gpu_health/nvml_api.h"

namespace ringmaster::gpu_health {

struct MonitorTimes {
  std::chrono::milliseconds look{5000};      // between two looks
  std::chrono::milliseconds listen{100};     // one wait for Xids, which a stop doesn't cut short
  std::chrono::milliseconds farewell{1000};  // how long the destructor waits for the thread
};

class GpuMonitor {
 public:
  // `bus_id` names the GPU, or nothing if it can't; it is called on the monitor's thread.
  GpuMonitor(std::shared_ptr<NvmlApi> nvml, std::function<std::string()> bus_id,
             std::shared_ptr<LatestHealth> latest, MonitorTimes times = {});
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;
  ~GpuMonitor();

 private:
  class Watch;

  const std::shared_ptr<Watch> watch_;  // the thread has it, too
};

}  // namespace ringmaster::gpu_health
