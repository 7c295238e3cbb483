// Asks the sidecars of a job's pods for their timelines, all at the same time.
//
// Thread rule: free functions that block, for a limited time; nothing is kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/inspection/connection.h"
#include "operator/inspection/pod_trace.h"

namespace ringmaster::inspection {

struct TimelineQuery {
  int seconds = 10;
  bool tensors = true;                // include the rows of tensors
  std::size_t most_bytes = 64 << 20;  // text of all pods together
  std::chrono::milliseconds patience{15'000};
  std::stop_token stop;  // the result is no longer wanted
};

struct GatheredTimelines {
  std::vector<PodTrace> pods;
  std::vector<std::string> missing;  // a sentence for each pod and worker without a timeline
};

// Asks by way of the API server on a cluster; directly otherwise, or if that is not allowed.
GatheredTimelines GatherTimelines(const Connection& to, const kube::Json& job,
                                  const std::vector<kube::Json>& pods, const TimelineQuery& query);
// Asks directly, and only pods whose reported address is their own.
GatheredTimelines GatherTimelinesStraight(const std::vector<kube::Json>& pods,
                                          const std::string& token, const TimelineQuery& query);

}  // namespace ringmaster::inspection
