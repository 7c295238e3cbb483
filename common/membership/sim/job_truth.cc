#include "common/membership/sim/job_truth.h"

namespace ringmaster::membership::sim {

Decided& JobTruth::Of(Epoch epoch) {
  const std::uint64_t lineage = EpochLineage(epoch), number = EpochNumber(epoch);
  if (decided_.size() <= lineage) decided_.resize(lineage + 1);
  if (decided_[lineage].size() <= number) decided_[lineage].resize(number + 1);
  return decided_[lineage][number];
}

void JobTruth::Add(const ViewPtr& view) {
  Of(view->epoch).view = view;
  if (EpochOf(newest_) < view->epoch) newest_ = view;
}

void JobTruth::CompleteStep(Epoch epoch) {
  trained_ = epoch;
  hash_ = (hash_ + epoch) * 0x9E3779B97F4A7C15ull + static_cast<std::uint64_t>(++step_);
}

std::uint64_t JobTruth::GoBackTo(std::int64_t step, std::uint64_t hash) {
  const std::uint64_t lost = step < step_ ? static_cast<std::uint64_t>(step_ - step) : 0;
  step_ = step;
  hash_ = hash;
  return lost;
}

}  // namespace ringmaster::membership::sim
