// Decides which pods less important jobs give up so that a waiting job can start. Only pods above
// what a job needs to train are taken, from the lowest priority first, as few as will do, and on
// the nodes where the fewest are needed. The caller says which jobs give up all their pods
// (whole_jobs.h). All or nothing: where the pods would not be enough, none is taken.
//
// A pod that is being terminated anyway counts as gone, so that no other pod is taken in its place.
//
// Pure.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/holding.h"

namespace ringmaster::scheduler {

// A pod that should have left is no longer counted on when it is late by this much.
inline constexpr std::chrono::seconds kLeavesLate{60};

// A pod that was taken from a job.
struct TakenPod {
  std::string uid;
  std::string name;
  std::string job;
  bool whole = false;  // the job gives up all its other pods, too
  friend bool operator==(const TakenPod&, const TakenPod&) = default;
};

// What the waiting job needs to start.
struct Need {
  std::string job;
  int priority = 0;
  std::vector<std::shared_ptr<const Json>> pods;
  std::vector<ShapePtr> shapes;  // shapes of `pods`, in the same order
};

struct Preemption {
  std::vector<TakenPod> taken;     // includes those of `before` that still have to go
  std::vector<std::string> nodes;  // where the needed pods fit afterwards
  std::optional<Moment> late_at;   // at this time a pod that is counted on is late in leaving
  int searches = 0;                // how often it was tried which jobs suffice
};

// The priority of the least important job that could be asked; nullopt if there is none.
std::optional<int> LowestPriority(const Holdings& holdings);

// The input of the decision. It holds references that must outlive it.
struct PreemptionCase {
  const Capacity* capacity;
  const Need& need;
  const Holdings& holdings;
  const std::vector<TakenPod>& before;      // what was taken for this job earlier
  const std::set<std::string>& for_others;  // uids of the pods that are taken for other jobs
  Moment now;
};

// Orders jobs by how little is lost if they stop: low priorities first, then small jobs, then those
// that have trained for the shortest time.
bool LosesLess(const Holding* a, const Holding* b);

// Decides one case, as often as needed with other jobs that give up all their pods.
class PreemptionSearch {
 public:
  // What `what` refers to outlives it, and does not change.
  explicit PreemptionSearch(const PreemptionCase& what);
  ~PreemptionSearch();
  PreemptionSearch(const PreemptionSearch&) = delete;
  PreemptionSearch& operator=(const PreemptionSearch&) = delete;

  // The jobs in `whole`, which must be less important than the waiting job, give up all their pods;
  // the others give only what they can do without. Those of `whole` are spared without which the
  // needed pods keep their places. Returns nullopt if that is not enough, or if no job is less
  // important.
  std::optional<Preemption> TakeWith(const std::set<std::string>& whole);
  // Whether TakeWith has an answer, for less.
  bool Suffices(const std::set<std::string>& whole);

 private:
  class Search;
  std::unique_ptr<Search> search_;  // null: no job is less important
};

}  // namespace ringmaster::scheduler
