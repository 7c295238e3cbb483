// What a sidecar answers to GET /status (docs/contracts.md, section 5), as values.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::cli {

struct WorkerStatus {
  int slot = 0;
  uint64_t incarnation = 0;
  int pid = 0;
  int rank = -1;
  std::string state;
  uint64_t step = 0;
  bool standby = false;
};

// One change of the view, with how long it took by phase (seconds).
struct Rebuild {
  uint64_t epoch = 0;
  uint64_t parent = 0;
  std::string reason;
  bool planned = false;
  int world_size = 0;
  std::vector<std::string> members;  // pods
  std::vector<std::string> left;
  std::vector<std::string> joined;
  std::map<std::string, double> seconds;
  int64_t steps_lost = 0;
};

struct RankStatus {
  std::string pod;
  int slot = 0;
  uint64_t incarnation = 0;
};

// A worker process that is no more.
struct WorkerExit {
  int slot = 0;
  uint64_t incarnation = 0;
  int exit_code = 0;
  int signal = 0;
};

struct SidecarStatus {
  std::string job;
  std::string pod;
  bool coordinator = false;
  std::string state;
  uint64_t epoch = 0;
  std::string view_reason;
  std::vector<RankStatus> ranks;  // of the view, in rank order
  std::vector<std::string> pods;  // of the view
  std::vector<WorkerStatus> workers;
  std::vector<WorkerExit> exits;
  uint64_t step = 0;
  std::map<std::string, double> values;
  double samples_per_second = 0;
  std::vector<Rebuild> rebuilds;
};

// Lenient, because a sidecar of another version may answer: what is missing or of another type
// keeps its default. nullopt: not a status at all.
std::optional<SidecarStatus> ParseSidecarStatus(const nlohmann::json& text);

}  // namespace ringmaster::cli
