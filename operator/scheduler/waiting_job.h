// A job that asks for places for its pods, and the answer that it has. Values.
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

enum class Standing {
  kWaits,  // has no pods
  kShort,  // has some, and too few to train
  kRuns,   // has enough, and wants more
};

// Its pods want to be on nodes that have the same value of a label.
struct Nearness {
  std::string label;      // empty: they don't
  bool required = false;  // else they would rather be apart than wait
  std::string domain;     // the value where others of the job are already; empty: none is
  friend bool operator==(const Nearness&, const Nearness&) = default;
};

struct AdmissionRequest {
  std::string job;  // namespace/name
  Standing standing = Standing::kWaits;
  int priority = 0;       // higher ones first
  bool preempts = false;  // may take pods from less important jobs
  // Its pods have stood Pending in vain: when they do so again no other job's do.
  bool calls_alone = false;
  Moment since;                                   // stands in line since then
  std::vector<std::shared_ptr<const Json>> pods;  // in the order in which they are granted
  Nearness near;
  std::vector<int> sizes;  // how many of them are of use together, ascending; at most all

  int Least() const { return sizes.empty() ? 0 : sizes.front(); }
  int Most() const { return sizes.empty() ? 0 : sizes.back(); }
  // The largest size that is of use and at most this; 0: none is.
  int SizeOfUse(int most) const {
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), most);
    return above == sizes.begin() ? 0 : *(above - 1);
  }
  // The next size of use above this; at most all.
  int SizeAbove(int pods) const {
    const auto above = std::upper_bound(sizes.begin(), sizes.end(), pods);
    return above == sizes.end() ? Most() : *above;
  }
};

struct WaitingJob {
  AdmissionRequest request;
  std::vector<ShapePtr> shapes;    // of the pods, as they are counted: in a domain, perhaps
  std::vector<ShapePtr> anywhere;  // of the pods, as they ask to be
  GangFit answer;
  std::optional<Moment> lacks_since;  // it was found to have too little room to start

  bool Satisfied() const {
    return answer.decided && answer.fit == static_cast<int>(request.pods.size());
  }
  bool CanNotStart() const { return answer.fit == 0 && request.standing != Standing::kRuns; }
};

}  // namespace ringmaster::scheduler
