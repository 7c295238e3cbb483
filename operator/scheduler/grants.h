// Places that are held for the pods of jobs because they were granted to these jobs.
//
// Pure. The capacity outlives it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

class Grants {
 public:
  explicit Grants(Capacity* capacity) : capacity_(*capacity) {}
  Grants(const Grants&) = delete;
  Grants& operator=(const Grants&) = delete;

  // Holds places for more of its pods, up to so many of them, and says so in its answer.
  void Grow(WaitingJob* waiting, int target);
  // So many pods of the shape were found to fit and no more; -1: that was not tried. It holds for
  // as long as nothing becomes free: what frees something calls ForgetBounds.
  int BoundOf(const ShapePtr& shape) const;
  void ForgetBounds() { bounds_.clear(); }

  bool HoldsAllOf(const WaitingJob& waiting) const;
  std::vector<std::string> PathsOf(const std::string& job) const;
  // Also what was granted and isn't asked for any more. A pod that is there and may start goes on
  // taking its place, whoever asked for it. Returns how many places are free again.
  int Drop(const std::string& job, const std::vector<std::string>& keep);

 private:
  bool IsSureToFail(const WaitingJob& waiting, int target) const;
  int PlaceUpTo(const WaitingJob& waiting, int target, std::string* why);

  struct Bound {
    int fits = 0;
    std::string why;
  };

  Capacity& capacity_;
  std::map<std::string, std::vector<std::string>> granted_;  // paths of pods, by job
  std::map<ShapePtr, Bound> bounds_;
};

}  // namespace ringmaster::scheduler
