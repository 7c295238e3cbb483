// The course of the training as this sidecar has seen it, and as others have before it came: world
// size, step and the values that the script reports, again and again. A page that is opened in the
// night shows the evening by it. It never grows beyond some 150 KB: when it is full every second
// sample goes, and from then on samples are taken half as often.
//
// Plain data of the sidecar's loop; time is handed in.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class TrainingRecord {
 public:
  static constexpr std::size_t kMostSamples = 2048;
  static constexpr std::size_t kMostValues = 8;  // of more names the first that came
  static constexpr std::chrono::seconds kFirstPeriod{1};
  // By more than this a clock was wrong: what it wrote is left out, so that others can be written.
  static constexpr std::chrono::milliseconds kMostAhead{60'000};

  // Whether a sample is due; else Add() would be too early.
  bool IsDue(SteadyTime now) const { return samples_.empty() || now - last_ >= period_; }
  void Add(SteadyTime now, int64_t unix_ms, std::size_t world_size, uint64_t step,
           const std::map<std::string, double>& values);

  // When it began, Unix time in ms; 0: not yet.
  int64_t since_unix_ms() const { return samples_.empty() ? 0 : samples_.front().unix_ms; }
  // GET /history (docs/contracts.md, section 5).
  nlohmann::json ToJson() const;

  // The same, of the samples before that time the newest `most`.
  nlohmann::json Before(int64_t unix_ms, std::size_t most) const;
  // Puts another's Before(unix_ms) in front of the own samples. How many were taken: what is no
  // sample, not before that time, or not before what there is, is left out.
  std::size_t Prepend(const nlohmann::json& history, int64_t unix_ms);
  void Clear() { samples_.clear(); }

 private:
  struct Sample {
    int64_t unix_ms = 0;
    uint64_t step = 0;
    uint32_t world_size = 0;
    std::array<float, kMostValues> values = {};  // NaN: it has not been reported yet
  };
  static std::optional<Sample> SampleOf(const nlohmann::json& row,
                                        const std::vector<std::size_t>& places);
  std::size_t IndexOf(const std::string& name);
  void KeepEverySecond();
  nlohmann::json RowsOf(std::size_t begin, std::size_t end) const;

  std::vector<std::string> names_;
  std::vector<Sample> samples_;
  SteadyTime last_{};
  std::chrono::seconds period_ = kFirstPeriod;
};

}  // namespace ringmaster::app
