// A sidecar's answer to GET /timeline (docs/contracts.md, section 5), as values.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::inspection {

struct TraceEvent {
  std::string name;
  int process = 0;  // within the pod
  int row = 0;
  double at_us = 0;    // microseconds since 1970, by the pod's clock
  double took_us = 0;  // 0: a moment
  std::vector<std::pair<std::string, std::int64_t>> numbers;
  std::string note;  // reason of a change; empty: none

  double end_us() const { return at_us + took_us; }
  // nullopt if it has no number of this name.
  std::optional<std::int64_t> Number(const std::string& of) const;
};

struct TraceWorker {
  int rank = -1;
  int slot = 0;
  int process = 0;
};

struct TraceMissing {
  int slot = 0;
  int rank = -1;
  std::string why;
};

struct PodTrace {
  std::string pod;
  bool coordinator = false;
  std::string machine;  // pods of one machine share a clock; empty: unknown
  std::vector<TraceWorker> workers;
  std::vector<TraceMissing> missing;
  std::vector<TraceEvent> events;
  std::map<int, std::string> names;                 // of processes
  std::map<std::pair<int, int>, std::string> rows;  // by process and row
};

// Parses leniently, because a sidecar of another version may answer: a value that is missing, of
// another type, or beyond what any sidecar sends keeps its default. nullopt: not a timeline at all.
std::optional<PodTrace> ParsePodTrace(const nlohmann::json& document);

}  // namespace ringmaster::inspection
