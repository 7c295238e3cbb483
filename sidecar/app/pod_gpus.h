// The health of the GPUs of this pod's workers, by slot, as the workers tell it.
//
// A worker may end of what it has just told, so it is kept beyond the process: a GPU that fails
// goes on failing in this pod, whatever the next process in that slot says, and Xids are counted
// on.
//
// Pure. Thread rule: the sidecar's loop only.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/job/gpu_health.h"

namespace ringmaster::app {

class PodGpus {
 public:
  explicit PodGpus(int slots) : slots_(slots) {}

  // Ignored if the pod has no such slot.
  void Take(int slot, std::uint64_t incarnation, job::GpuHealth health);

  std::vector<job::GpuHealth> All() const;
  // Only with slot, GPU and reason, which don't change any more.
  std::vector<job::GpuHealth> Failing() const;

 private:
  struct Gpu {
    std::uint64_t incarnation = 0;
    job::GpuHealth health;                // `xids` are those of all processes
    std::map<int, std::uint64_t> before;  // Xids of the processes before this one
  };

  const int slots_;
  std::map<int, Gpu> by_slot_;
};

}  // namespace ringmaster::app
