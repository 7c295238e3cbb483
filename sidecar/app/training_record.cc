#include "sidecar/app/training_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "common/plain_text/plain_text.h"

namespace ringmaster::app {
namespace {

constexpr std::size_t kLongestName = 200;                      // of a value
constexpr std::chrono::seconds kLongestPeriod{7 * 24 * 3600};  // between two samples

}  // namespace

// Of a row of another sidecar; nullopt: it is none.
std::optional<TrainingRecord::Sample> TrainingRecord::SampleOf(
    const nlohmann::json& row, const std::vector<std::size_t>& places) {
  const auto is_count = [&row](std::size_t at) {
    return row[at].is_number_integer() && row[at].get<int64_t>() >= 0;
  };
  if (!row.is_array() || row.size() < 3 || !is_count(0) || !is_count(1) || !is_count(2))
    return std::nullopt;
  Sample sample{.unix_ms = row[0].get<int64_t>(),
                .step = row[2].get<uint64_t>(),
                .world_size = row[1].get<uint32_t>()};
  sample.values.fill(std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < places.size() && i + 3 < row.size(); ++i) {
    if (row[i + 3].is_number() && places[i] < kMostValues)
      sample.values[places[i]] = row[i + 3].get<float>();
  }
  return sample;
}

std::size_t TrainingRecord::IndexOf(const std::string& name) {
  const auto known = std::find(names_.begin(), names_.end(), name);
  if (known == names_.end() && names_.size() < kMostValues) {
    names_.push_back(name);
    return names_.size() - 1;
  }
  return static_cast<std::size_t>(known - names_.begin());
}

void TrainingRecord::KeepEverySecond() {
  for (std::size_t i = 0; 2 * i < samples_.size(); ++i) samples_[i] = samples_[2 * i];
  samples_.resize((samples_.size() + 1) / 2);
  period_ = std::min(period_ * 2, std::chrono::seconds(kLongestPeriod));
}

void TrainingRecord::Add(SteadyTime now, int64_t unix_ms, std::size_t world_size, uint64_t step,
                         const std::map<std::string, double>& values) {
  last_ = now;
  // Samples that another pod has recorded may be of a clock that is ahead of ours. A little does no
  // harm; those that are further ahead are dropped.
  while (!samples_.empty() && samples_.back().unix_ms > unix_ms + kMostAhead.count())
    samples_.pop_back();
  if (!samples_.empty() && unix_ms <= samples_.back().unix_ms) return;
  if (samples_.size() >= kMostSamples) KeepEverySecond();
  Sample sample{.unix_ms = unix_ms, .step = step, .world_size = static_cast<uint32_t>(world_size)};
  sample.values.fill(std::numeric_limits<float>::quiet_NaN());
  for (const auto& [name, value] : values) {
    if (const std::size_t i = IndexOf(name); i < kMostValues && i < names_.size())
      sample.values[i] = static_cast<float>(value);
  }
  samples_.push_back(sample);
}

nlohmann::json TrainingRecord::ToJson() const { return RowsOf(0, samples_.size()); }

nlohmann::json TrainingRecord::RowsOf(std::size_t begin, std::size_t end) const {
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t at = begin; at < end; ++at) {
    const Sample& sample = samples_[at];
    nlohmann::json row = {sample.unix_ms, sample.world_size, sample.step};
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const double value = sample.values[i];
      row.push_back(std::isfinite(value) ? nlohmann::json(value) : nlohmann::json());
    }
    rows.push_back(std::move(row));
  }
  return {{"periodSeconds", period_.count()}, {"values", names_}, {"samples", std::move(rows)}};
}

nlohmann::json TrainingRecord::Before(int64_t unix_ms, std::size_t most) const {
  const auto end =
      std::lower_bound(samples_.begin(), samples_.end(), unix_ms,
                       [](const Sample& sample, int64_t time) { return sample.unix_ms < time; });
  const auto count = static_cast<std::size_t>(end - samples_.begin());
  return RowsOf(count - std::min(count, most), count);
}

std::size_t TrainingRecord::Prepend(const nlohmann::json& history, int64_t unix_ms) {
  const int64_t end = samples_.empty() ? unix_ms : std::min(unix_ms, since_unix_ms());
  std::vector<std::size_t> places;  // of their values among ours
  for (const std::string& name : fields::Texts(history, "values")) {
    if (places.size() < kMostValues) places.push_back(IndexOf(plain_text::Cut(name, kLongestName)));
  }
  std::vector<Sample> before;
  for (const nlohmann::json& row : fields::List(history, "samples")) {
    const auto sample = SampleOf(row, places);
    const int64_t least = before.empty() ? 1 : before.back().unix_ms + 1;
    if (sample && sample->unix_ms >= least && sample->unix_ms < end) before.push_back(*sample);
  }
  samples_.insert(samples_.begin(), before.begin(), before.end());
  const std::chrono::seconds period(fields::Integer(history, "periodSeconds"));
  if (!before.empty()) period_ = std::max(period_, std::min(period, kLongestPeriod));
  while (samples_.size() > kMostSamples) KeepEverySecond();
  return before.size();
}

}  // namespace ringmaster::app
