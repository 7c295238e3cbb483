// The places that are held because they were granted to jobs.
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

  // Holds places for more of the job's pods, `target` of them at most, and updates its answer.
  void Grow(WaitingJob* waiting, int target);
  // The number of pods of this shape beyond which none was found to fit; -1 if that was not tried.
  // It is valid until something becomes free; the code that frees something calls ForgetBounds.
  int BoundOf(const ShapePtr& shape) const;
  void ForgetBounds() { bounds_.clear(); }

  bool HoldsAllOf(const WaitingJob& waiting) const;
  std::vector<std::string> PathsOf(const std::string& job) const;
  // Releases all places granted to the job except those of `keep`, also those that it doesn't
  // request any more. A pod that exists and may start keeps its place. Returns how many places have
  // become free.
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
