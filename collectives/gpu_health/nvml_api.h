// NVIDIA's management library (NVML) as GpuMonitor uses it: the real library (real_nvml.h), or a
// fake.
//
// Each method is the function of NVML with this name, and has its rules. Any of them may hang where
// the driver does.
//
// Thread rule: the monitor's thread.
#pragma once

#include <cstdint>
#include <string>

namespace ringmaster::gpu_health {

using NvmlResult = int;
inline constexpr NvmlResult kNvmlSuccess = 0;
inline constexpr NvmlResult kNvmlNotSupported = 3;
inline constexpr NvmlResult kNvmlTimeout = 10;
inline constexpr NvmlResult kNvmlGpuIsLost = 15;
inline constexpr NvmlResult kNvmlResetRequired = 16;

// Reasons for a lower clock that protect the hardware, as bits of CurrentClocksThrottleReasons().
inline constexpr std::uint64_t kHwSlowdown = 0x8, kHwThermalSlowdown = 0x40, kHwPowerBrake = 0x80;

class NvmlApi {
 public:
  virtual ~NvmlApi() = default;

  virtual NvmlResult Init() = 0;
  virtual NvmlResult DeviceGetHandleByPciBusId(const std::string& bus_id, void** device) = 0;
  // From now on EventSetWait() tells the device's Xids.
  virtual NvmlResult RegisterXids(void* device) = 0;
  // kNvmlSuccess: *xid came; kNvmlTimeout: none did.
  virtual NvmlResult EventSetWait(unsigned timeout_ms, std::uint64_t* xid) = 0;
  // Uncorrected errors since the driver was loaded.
  virtual NvmlResult TotalEccErrors(void* device, std::uint64_t* count) = 0;
  virtual NvmlResult RemappedRows(void* device, bool* pending, bool* failed) = 0;
  virtual NvmlResult CurrentClocksThrottleReasons(void* device, std::uint64_t* reasons) = 0;
  virtual NvmlResult Temperature(void* device, unsigned* celsius) = 0;
};

}  // namespace ringmaster::gpu_health
