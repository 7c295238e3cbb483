// What a sidecar answers to GET /timeline (docs/contracts.md, section 5), as values.
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
  int process = 0;  // of the pod
  int row = 0;
  double at_us = 0;    // since 1970, by the pod's clock
  double took_us = 0;  // 0: a moment
  std::vector<std::pair<std::string, std::int64_t>> numbers;
  std::string note;  // the reason of a change; empty: none

  double end_us() const { return at_us + took_us; }
  // nullopt: it has none of that name.
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
  std::string machine;  // pods of one have one clock; empty: not known
  std::vector<TraceWorker> workers;
  std::vector<TraceMissing> missing;
  std::vector<TraceEvent> events;
  std::map<int, std::string> names;                 // of processes
  std::map<std::pair<int, int>, std::string> rows;  // by process and row
};

// Lenient, because a sidecar of another version may answer: what is missing or of another type
// keeps its default, and so does what is longer or more than any sidecar says. nullopt: none at
// all.
std::optional<PodTrace> ParsePodTrace(const nlohmann::json& document);

}  // namespace ringmaster::inspection
