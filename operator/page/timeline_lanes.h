// The last seconds of a job as the page draws them: one lane for each rank. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/inspection/job_trace.h"

namespace ringmaster::page {

struct LanesLimits {
  double seconds = 3;
  std::size_t lanes = 64;
  std::size_t bars = 20'000;  // in all lanes together; the oldest are omitted
};

// {"from": unix ms, "ms": how long, "lanes": [{"rank", "worker", "steps": [ms, ..],
//  "waits", "runs", "changes": [[ms since `from`, ms it took, what], ..]}],
//  "changes": [[ms, ms, phase, reason], ..] as the coordinator saw them,
//  "hidden": ranks that have no lane, "operations", "late": [{"rank", "worker", "last",
//  "waitedSeconds"}], "missing": [sentence, ..], "uncompared": [the first pod of a machine, ..]}
// Times are the coordinator's. Where no operation compares a machine's clock with it, the machine's
// lanes end with its own newest event, because its clock may be hours off.
nlohmann::json LanesOf(const inspection::JobTrace& trace, const std::vector<std::string>& missing,
                       const LanesLimits& limits);

}  // namespace ringmaster::page
