// Which of the jobs that wait may start how many of their pods. One pass decides for all of them:
// by priority, then by how long they have stood in line. What is granted is held for the pod until
// it runs, so that nobody else counts on it.
//
// A job gets as many pods together as its smallest size needs, or none. What is left then makes
// jobs grow, in the same order. Small jobs pass a large one that doesn't fit yet (backfill), until
// it has waited for kPatience: from then on what is free is kept for it, for one such job at a
// time.
//
// Pure: no clock, no thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

using Moment = std::chrono::system_clock::time_point;

struct AdmissionRequest {
  std::string job;                                // namespace/name
  int priority = 0;                               // higher ones first
  Moment since;                                   // stands in line since then
  std::vector<std::shared_ptr<const Json>> pods;  // in the order in which they are granted
  std::vector<int> sizes;  // how many of them are of use together, ascending; at most all
};

class Admission {
 public:
  // So long small jobs may pass one that doesn't fit.
  static constexpr std::chrono::seconds kPatience{120};

  Capacity& capacity() { return capacity_; }

  // Puts the job in line, or changes what it asks for. Decides at once where nobody else waits,
  // else the next Pass does. `started`: paths of its pods that may start or have started.
  // The answer: how many of the pods may start, and why not the next one.
  GangFit Ask(AdmissionRequest request, const std::vector<std::string>& started);
  // The job asks for nothing any more. What is held for its pods but `started` is free again.
  void Withdraw(const std::string& job, const std::vector<std::string>& started = {});

  // Somebody waits, and something has changed since the last pass.
  bool IsPassDue() const;
  // Decides for all; returns the jobs whose answer is another one now.
  std::vector<std::string> Pass(Moment now);

 private:
  struct Waiting {
    AdmissionRequest request;
    GangFit answer;
    bool decided = false;
    bool Satisfied() const {
      return decided && answer.fit == static_cast<int>(request.pods.size());
    }
  };

  bool OthersWait(const std::string& job) const;
  std::vector<Waiting*> InOrder();
  void Grow(Waiting* waiting, bool to_least);
  std::vector<std::string> HoldWhatFits(const Waiting& waiting);
  void Drop(const std::string& job, const std::vector<std::string>& keep);

  Capacity capacity_;
  std::map<std::string, Waiting> waiting_;                   // by job
  std::map<std::string, std::vector<std::string>> granted_;  // paths of pods that it was granted
  bool asked_ = false;                                       // since the last pass
};

}  // namespace ringmaster::scheduler
