#include "sidecar/app/pod_gpus.h"

#include <algorithm>
#include <utility>

namespace ringmaster::app {

void PodGpus::Take(int slot, std::uint64_t incarnation, job::GpuHealth health) {
  if (slot < 0 || slot >= slots_) return;
  Gpu& gpu = by_slot_[slot];
  if (gpu.incarnation != incarnation) gpu.before = gpu.health.xids;
  gpu.incarnation = incarnation;
  job::GpuHealth known = std::exchange(gpu.health, std::move(health));
  gpu.health.slot = slot;
  if (!known.failing.empty()) {
    gpu.health.failing = std::move(known.failing);
    gpu.health.gpu = std::move(known.gpu);
  }
  std::map<int, std::uint64_t> total = std::move(known.xids);
  for (const auto& [number, count] : gpu.health.xids) {
    if (total.size() >= job::kMostXids && total.count(number) == 0) continue;
    const auto before = gpu.before.find(number);
    const std::uint64_t all = count + (before == gpu.before.end() ? 0 : before->second);
    total[number] = std::max(total[number], all);
  }
  gpu.health.xids = std::move(total);
}

std::vector<job::GpuHealth> PodGpus::All() const {
  std::vector<job::GpuHealth> all;
  for (const auto& [slot, gpu] : by_slot_) all.push_back(gpu.health);
  return all;
}

std::vector<job::GpuHealth> PodGpus::Failing() const {
  std::vector<job::GpuHealth> failing;
  for (const auto& [slot, gpu] : by_slot_) {
    if (gpu.health.failing.empty()) continue;
    failing.push_back({.slot = slot, .gpu = gpu.health.gpu, .failing = gpu.health.failing});
  }
  return failing;
}

}  // namespace ringmaster::app
