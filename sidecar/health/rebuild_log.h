// The rebuilds this sidecar has seen and how long their phases took, for /status, the metrics and
// the operator.
//
// Plain data on the loop; time is handed in.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/job/rebuild.h"

namespace ringmaster::health {

class RebuildLog {
 public:
  static constexpr size_t kKeep = 1000;

  job::Rebuild& Add(job::Rebuild rebuild) {
    rebuilds_.push_back(std::move(rebuild));
    if (rebuilds_.size() > kKeep) rebuilds_.pop_front();
    return rebuilds_.back();
  }
  // Null if it is not (or no longer) known.
  job::Rebuild* Find(uint64_t epoch) {
    for (auto it = rebuilds_.rbegin(); it != rebuilds_.rend(); ++it) {
      if (it->epoch == epoch) return &*it;
    }
    return nullptr;
  }
  // Those that another sidecar has seen before the first of these, the oldest first. How many were
  // taken: as many of the newest as there is room for.
  size_t Prepend(const std::vector<job::Rebuild>& before) {
    size_t taken = 0;
    for (auto it = before.rbegin(); it != before.rend() && rebuilds_.size() < kKeep; ++it) {
      if (!rebuilds_.empty() && it->epoch >= rebuilds_.front().epoch) continue;
      rebuilds_.push_front(*it);
      ++taken;
    }
    return taken;
  }
  const std::deque<job::Rebuild>& all() const { return rebuilds_; }

 private:
  std::deque<job::Rebuild> rebuilds_;
};

}  // namespace ringmaster::health
