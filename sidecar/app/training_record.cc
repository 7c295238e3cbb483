#include "sidecar/app/training_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ringmaster::app {

std::size_t TrainingRecord::IndexOf(const std::string& name) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known == names_.end() && names_.size() < kMostValues) {
    names_.push_back(name);
    return names_.size() - 1;
  }
  return static_cast<std::size_t>(known - names_.begin());
}

void TrainingRecord::Add(SteadyTime now, int64_t unix_ms, std::size_t world_size, uint64_t step,
                         const std::map<std::string, double>& values) {
  if (samples_.size() >= kMostSamples) {
    for (std::size_t i = 0; 2 * i < samples_.size(); ++i) samples_[i] = samples_[2 * i];
    samples_.resize((samples_.size() + 1) / 2);
    period_ *= 2;
  }
  Sample sample{.unix_ms = unix_ms, .step = step, .world_size = static_cast<uint32_t>(world_size)};
  sample.values.fill(std::numeric_limits<float>::quiet_NaN());
  for (const auto& [name, value] : values) {
    if (const std::size_t i = IndexOf(name); i < kMostValues && i < names_.size())
      sample.values[i] = static_cast<float>(value);
  }
  samples_.push_back(sample);
  last_ = now;
}

nlohmann::json TrainingRecord::ToJson() const {
  nlohmann::json samples = nlohmann::json::array();
  for (const Sample& sample : samples_) {
    nlohmann::json row = {sample.unix_ms, sample.world_size, sample.step};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const double value = sample.values[i];
      row.push_back(std::isfinite(value) ? nlohmann::json(value) : nlohmann::json());
    }
    samples.push_back(std::move(row));
  }
  return {{"periodSeconds", period_.count()}, {"values", names_}, {"samples", std::move(samples)}};
}

}  // namespace ringmaster::app
