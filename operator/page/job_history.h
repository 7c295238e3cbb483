// What the page has seen of one job: a sample for each observation, and the changes of its view.
// Pure; it keeps only the newest samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/inspection/job_inspection.h"

namespace ringmaster::page {

// A job's summary from the API server alone: {"namespace", "name", "uid", "state", "wanted":
// workers, "workers": in the view, "troubles"}.
nlohmann::json Summary(const nlohmann::json& job);

class JobHistory {
 public:
  using Json = nlohmann::json;

  struct Limits {
    std::size_t samples = 900;
    std::size_t past = 500;     // samples from before, spread over the whole time
    std::size_t ranks = 128;    // ranks with times of their own in each sample
    std::size_t listed = 2048;  // ranks with all their present facts
    std::size_t changes = 200;  // view changes, the newest ones
  };

  explicit JobHistory(Limits limits) : limits_(limits) {}

  void Add(inspection::Inspection now, std::int64_t unix_ms);
  // What was before the first sample, as a sidecar has kept it (docs/contracts.md, section 5); what
  // is none is left out.
  void SetPast(const Json& history);

  // The job as the API server has it.
  const Json& job() const { return last_.job; }
  // Summary(), and the job's present state: what holds it up, its view changes, its ranks.
  Json Now() const;
  // {"t": unix ms, "workers": ranks in the view, "step", "stepSeconds" (null: none was completed
  // since the sample before), "samplesPerSecond", "values": what the script reports,
  // "computes": by rank, the share of its time in which it was not blocked (null: not known),
  // "paces": by rank, the seconds of a step (null: none has ended),
  // "untold": ranks of the view of which no sidecar has told}
  // Where no sidecar has answered at all, the figures are null, "values" and the lists are empty.
  const Json& newest() const { return samples_.back(); }
  // Past samples come first; they are like the others, but without ranks in "computes".
  Json Samples() const;
  std::size_t past() const { return past_.size(); }

 private:
  const Limits limits_;
  inspection::Inspection last_;
  Json ranks_ = Json::array();
  Json straggler_;
  // As the sidecars last reported them, because they are gone when a job ends.
  Json changes_ = Json::array();
  std::vector<Json> past_;
  std::deque<Json> samples_;
};

}  // namespace ringmaster::page
