#include "sidecar/app/step_figures.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::app {
namespace {

constexpr size_t kMaxValues = 64;  // that one worker may report

}  // namespace

void StepFigures::TakePing(const nlohmann::json& frame) {
  step_ = fields::Unsigned(frame, "step");
  stalls_ = job::StallsFromJson(fields::Member(frame, "stalls"));
  stalls_epoch_ = fields::Unsigned(frame, "epoch");
  times_ = job::WorkerTimesFromJson(fields::Member(frame, "times"));
  const nlohmann::json& values = fields::Member(frame, "values");
  if (!values.is_object()) return;
  for (const auto& [name, value] : values.items()) {
    const bool room = values_.size() < kMaxValues || values_.count(name) > 0;
    if (value.is_number() && room) values_[name] = value.get<double>();
  }
}

const std::vector<job::Stall>& StepFigures::StallsIn(membership::Epoch epoch) const {
  static const std::vector<job::Stall> kNone;
  return stalls_epoch_ == epoch ? stalls_ : kNone;
}

}  // namespace ringmaster::app
