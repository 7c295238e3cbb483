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
  // So many names of workers are kept, those of the newest changes: all changes of a job of
  // thousands of workers would make /status too long to be read.
  static constexpr size_t kNames = 10'000;

  job::Rebuild& Add(job::Rebuild rebuild) {
    rebuilds_.push_back(std::move(rebuild));
    if (rebuilds_.size() > kKeep) rebuilds_.pop_front();
    ForgetNames();
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
  static constexpr size_t kOfAnOldChange = 10;  // names of those that came, and of those that left

  void ForgetNames() {
    size_t names = 0;
    for (auto it = rebuilds_.rbegin(); it != rebuilds_.rend(); ++it) {
      names += it->members.size() + it->left.size() + it->joined.size();
      if (names <= kNames || it == rebuilds_.rbegin()) continue;
      it->members = {};
      for (auto* some : {&it->left, &it->joined}) {
        if (some->size() > kOfAnOldChange) some->resize(kOfAnOldChange);
      }
    }
  }

  std::deque<job::Rebuild> rebuilds_;
};

}  // namespace ringmaster::health
