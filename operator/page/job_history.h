// What the page has seen of one job: a sample for each look, and the changes of its view. Pure; it
// keeps the newest samples only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/inspection/job_inspection.h"

namespace ringmaster::page {

// What the API server alone says of a job: {"namespace", "name", "uid", "state", "wanted": workers,
// "workers": in the view, "troubles"}.
nlohmann::json Summary(const nlohmann::json& job);

class JobHistory {
 public:
  using Json = nlohmann::json;

  struct Limits {
    std::size_t samples = 900;
    std::size_t past = 500;     // samples of before, spread over all of it
    std::size_t ranks = 128;    // with times of their own, in each sample
    std::size_t listed = 2048;  // ranks with all that is known of them now
    std::size_t changes = 200;  // of the view, the newest
  };

  explicit JobHistory(Limits limits) : limits_(limits) {}

  void Add(inspection::Inspection now, std::int64_t unix_ms);
  // What was before the first sample, as a sidecar has kept it (docs/contracts.md, section 5); what
  // is none is left out.
  void SetPast(const Json& history);

  // The job as the API server has it.
  const Json& job() const { return last_.job; }
  // Summary(), and the job as it is now: state, what holds it up, its changes of view, its ranks.
  Json Now() const;
  // {"t": unix ms, "workers": ranks in the view, "step", "stepSeconds" (null: none was completed
  // since the sample before), "samplesPerSecond", "values": what the script reports,
  // "computes": by rank, the share of its time in which it was not blocked (null: not known),
  // "paces": by rank, the seconds of a step (null: none has ended)}
  const Json& newest() const { return samples_.back(); }
  // Those of the past first, which are as the others, with no rank of "computes".
  Json Samples() const;
  std::size_t past() const { return past_.size(); }

 private:
  const Limits limits_;
  inspection::Inspection last_;
  Json ranks_ = Json::array();
  Json straggler_;
  Json changes_ = Json::array();  // as the sidecars have told last: when a job ends they go
  std::vector<Json> past_;
  std::deque<Json> samples_;
};

}  // namespace ringmaster::page
