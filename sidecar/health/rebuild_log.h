// The rebuilds this sidecar has seen and how long their phases took, for /status, the metrics and
// the operator.
//
// Plain data on the loop; time is handed in.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::health {

// In the order in which they are shown.
inline constexpr const char* kPhases[] = {"detect", "decide", "stop", "connect", "redo", "resume"};

struct Rebuild {
  uint64_t epoch = 0, parent = 0;
  std::string reason;
  bool planned = false;
  int64_t at_unix_ms = 0;
  int world_size = 0;
  std::vector<std::string> members, left, joined;  // pod names
  std::map<std::string, double> seconds;           // by phase
  uint64_t steps_before = 0;  // completed by some worker of the parent, as far as it was heard
  int64_t steps_lost = 0;     // of these, absent from what the survivors went on from
  bool complete = false;      // the first operation of the view has completed
};

nlohmann::json ToJson(const Rebuild& rebuild);

class RebuildLog {
 public:
  static constexpr size_t kKeep = 1000;

  Rebuild& Add(Rebuild rebuild) {
    rebuilds_.push_back(std::move(rebuild));
    if (rebuilds_.size() > kKeep) rebuilds_.pop_front();
    return rebuilds_.back();
  }
  // Null if it is not (or no longer) known.
  Rebuild* Find(uint64_t epoch) {
    for (auto it = rebuilds_.rbegin(); it != rebuilds_.rend(); ++it) {
      if (it->epoch == epoch) return &*it;
    }
    return nullptr;
  }
  const std::deque<Rebuild>& all() const { return rebuilds_; }

 private:
  std::deque<Rebuild> rebuilds_;
};

}  // namespace ringmaster::health
