// Asks the sidecars of a job's pods for their timelines, all at the same time.
//
// Thread rule: free functions that block, for a bounded time; nothing is kept.
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
  bool tensors = true;                // with the rows of tensors
  std::size_t most_bytes = 64 << 20;  // of text, all pods together
  std::chrono::milliseconds patience{15'000};
  std::stop_token stop;  // nobody waits for it any more
};

struct GatheredTimelines {
  std::vector<PodTrace> pods;
  std::vector<std::string> missing;  // a sentence for each pod and worker that told nothing
};

// Through the API server on a cluster, else, or where that is not allowed, straight.
GatheredTimelines GatherTimelines(const Connection& to, const kube::Json& job,
                                  const std::vector<kube::Json>& pods, const TimelineQuery& query);
// Straight, and only from pods that are where they say.
GatheredTimelines GatherTimelinesStraight(const std::vector<kube::Json>& pods,
                                          const std::string& token, const TimelineQuery& query);

}  // namespace ringmaster::inspection
