// A job that requests places for its pods, and its current answer. Values.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/scheduler/gang_fit.h"
#include "operator/scheduler/moment.h"
#include "operator/scheduler/shape.h"

namespace ringmaster::scheduler {

enum class GangState {
  kWaits,  // has no pods
  kShort,  // has some, and too few to train
  kRuns,   // has enough, and wants more
};

// The job's pods want to be on nodes that have the same value of a label.
struct Nearness {
  std::string label;      // empty: the pods may be anywhere
  bool required = false;  // false: the job prefers spreading to waiting
  std::string domain;     // value of the label where pods of the job are already; empty: nowhere
  friend bool operator==(const Nearness&, const Nearness&) = default;
};

struct AdmissionRequest {
  std::string job;  // namespace/name
  GangState state = GangState::kWaits;
  int priority = 0;       // higher ones come first
  bool preempts = false;  // it may take pods from less important jobs
  // Its pods have stood Pending in vain: when they do so again, no other job's pods do.
  bool calls_alone = false;
  bool may_call = true;                           // false: an autoscaler has just refused it nodes
  Moment since;                                   // it has stood in line since then
  std::vector<std::shared_ptr<const Json>> pods;  // in the order in which they are granted
  Nearness near;
  std::vector<int> sizes;  // useful numbers of granted pods, ascending; at most pods.size()

  int Least() const { return sizes.empty() ? 0 : sizes.front(); }
  int Most() const { return sizes.empty() ? 0 : sizes.back(); }
  // The largest useful size that is not above `most`; 0 if there is none.
  int SizeOfUse(int most) const {
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), most);
    return above == sizes.begin() ? 0 : *(above - 1);
  }
  // The smallest useful size above `pods`; the largest one if there is none.
  int SizeAbove(int pods) const {
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), pods);
    return above == sizes.end() ? Most() : *above;
  }
};

struct WaitingJob {
  AdmissionRequest request;
  std::vector<ShapePtr> shapes;    // of the pods, restricted to the domain if there is one
  std::vector<ShapePtr> anywhere;  // of the pods, without that restriction
  GangFit answer;
  std::optional<Moment> lacks_since;  // since then it has had too little room to start

  bool Satisfied() const {
    return answer.decided && answer.fit == static_cast<int>(request.pods.size());
  }
  bool CanNotStart() const { return answer.fit == 0 && request.state != GangState::kRuns; }
};

}  // namespace ringmaster::scheduler
