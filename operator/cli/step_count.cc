#include "operator/cli/step_count.h"

#include <algorithm>

namespace ringmaster::cli {
namespace {

std::uint64_t LineageOf(std::uint64_t epoch) { return epoch >> 40; }

}  // namespace

void StepCount::Observe(const inspection::SidecarStatus& status) {
  const std::uint64_t lineage = LineageOf(status.epoch);
  if (lineage < lineage_) return;
  if (lineage > lineage_) step_ = 0;
  lineage_ = lineage;
  step_ = std::max(step_, status.step);
  for (const inspection::WorkerStatus& worker : status.workers)
    step_ = std::max(step_, worker.step);
}

}  // namespace ringmaster::cli
