// What the page has seen of one job: a sample for each look, and the changes of its view. Pure; it
// keeps the newest samples only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>

#include "operator/cli/job_inspection.h"

namespace ringmaster::ui {

class JobHistory {
 public:
  using Json = nlohmann::json;

  struct Limits {
    std::size_t samples = 900;
    std::size_t ranks = 128;  // with times of their own, in each sample
  };

  explicit JobHistory(Limits limits) : limits_(limits) {}

  void Add(cli::Inspection now, std::int64_t unix_ms);

  // The job as it is now: state, what holds it up, its changes of view, its ranks.
  Json Now() const;
  // {"t": unix ms, "workers": ranks in the view, "step", "stepSeconds" (null: none was completed
  // since the sample before), "samplesPerSecond", "values": what the script reports,
  // "computes": by rank, the share of its time in which it was not blocked (null: not known)}
  const Json& newest() const { return samples_.back(); }
  Json Samples() const { return Json(samples_); }

 private:
  const Limits limits_;
  cli::Inspection last_;
  Json ranks_ = Json::array();
  Json straggler_;
  std::deque<Json> samples_;
};

}  // namespace ringmaster::ui
