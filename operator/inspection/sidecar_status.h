// A sidecar's answer to GET /status (docs/contracts.md, section 5), as values.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/rebuild.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/job/worker_times.h"

namespace ringmaster::inspection {

struct WorkerStatus {
  int slot = 0;
  uint64_t incarnation = 0;
  int pid = 0;
  int rank = -1;
  std::string state;
  std::string library;  // version of its library; empty: not reported
  uint64_t step = 0;
  job::WorkerTimes times;
  bool standby = false;
  // False: its script registers no state, so it can't join training workers.
  bool takes_state = true;
};

struct RankHolder {
  std::string pod;
  int slot = 0;
  uint64_t incarnation = 0;
};

struct BrokenLink {
  std::string pod;  // at the other end
  int breaks = 0;   // in the last ten minutes
  bool kept = false;
};

struct SidecarStatus {
  std::string version;  // version of the sidecar; empty: too old to report it
  std::string job;
  std::string pod;
  bool coordinator = false;
  std::string state;
  uint64_t epoch = 0;
  std::string view_reason;
  std::vector<RankHolder> ranks;  // ranks of the view, in order
  std::vector<std::string> pods;  // pods of the view
  std::vector<WorkerStatus> workers;
  std::vector<job::WorkerExit> exits;
  std::vector<int> missing_slots;  // slots whose worker has not called init() yet
  bool operator_connected = true;
  uint64_t step = 0;
  std::map<std::string, double> values;
  double samples_per_second = 0;
  std::vector<job::Rebuild> rebuilds;
  std::vector<job::Stall> stalls;
  std::vector<job::GpuHealth> gpus;
  std::vector<BrokenLink> broken_links;
  int64_t history_since = 0;  // Unix time in ms; 0: it keeps no history
};

// Parses leniently, because a sidecar of another version may answer: a value that is missing or of
// another type keeps its default. What is longer than any sidecar's answer is cut, because a pod
// may answer anything. nullopt: not a status at all.
std::optional<SidecarStatus> ParseSidecarStatus(const nlohmann::json& text);

// Shortens a text from a sidecar to the length that is kept.
std::string ShortText(std::string text);
// Shortens the name of a value that a script reports to the length that is kept.
std::string ValueName(const std::string& name);

}  // namespace ringmaster::inspection
