// From what NVML tells of one GPU to its health: whether it goes on, and what people should know.
//
// Errors of its memory make it fail where they happen while the worker uses it. Earlier ones warn:
// the job was given this GPU as it is, and after a drain could be given it again.
//
// Pure: no NVML, no clock. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "common/job/gpu_health.h"

namespace ringmaster::gpu_health {

// One look at the GPU. No value: NVML does not tell.
struct GpuReading {
  bool lost = false, needs_reset = false;
  std::optional<std::uint64_t> uncorrected;  // errors of its memory
  std::optional<bool> remap_pending, remap_failed;
  std::optional<std::uint64_t> throttle;  // reasons, see nvml_api.h
  std::optional<int> celsius;
};

class GpuCondition {
 public:
  explicit GpuCondition(std::string bus_id) { health_.gpu = std::move(bus_id); }

  void OnXid(std::uint64_t number);
  void OnReading(const GpuReading& reading);
  const job::GpuHealth& health() const { return health_; }

 private:
  // The first reason counts: others may follow from it.
  void Fail(const std::string& why) {
    if (health_.failing.empty()) health_.failing = why;
  }
  void CheckMemory(const GpuReading& reading);

  job::GpuHealth health_;
  std::optional<GpuReading> first_;
  std::set<std::string> of_xids_;  // warnings
};

}  // namespace ringmaster::gpu_health
