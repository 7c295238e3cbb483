// The newest step of a job. It never falls, unless the job has begun again in a later lineage.
// Pure.
//
// Thread rule: none; one thread owns it.
#pragma once

#include <cstdint>

#include "operator/inspection/sidecar_status.h"

namespace ringmaster::cli {

class StepCount {
 public:
  // What is heard of an earlier lineage than the newest one is left out.
  void Observe(const inspection::SidecarStatus& status);
  std::uint64_t step() const { return step_; }

 private:
  std::uint64_t lineage_ = 0;
  std::uint64_t step_ = 0;  // in that lineage, which may have begun again from a checkpoint
};

}  // namespace ringmaster::cli
