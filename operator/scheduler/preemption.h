// Which pods less important jobs give up so that a job that waits can start. Pods above what these
// need to train go first: of the lowest priority first, and of those as few as will do, on the
// nodes where that takes the fewest. Which jobs give all that they have is said by the caller
// (whole_jobs.h). All or nothing: where it would not suffice, nothing is taken.
//
// A pod that is about to go anyway counts as gone: what leaves already isn't taken a second time.
//
// Pure: the capacity is as before afterwards.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

// After so long beyond its time a pod that should have gone is not counted on any more.
inline constexpr std::chrono::seconds kLeavesLate{60};

// A pod of a job that trains.
struct GivablePod {
  std::string uid;
  std::string name;
  bool trains = true;  // false: it is on its way into the ring, or out of it
  friend bool operator==(const GivablePod&, const GivablePod&) = default;
};

// What a job that trains has, and how much of that it may be asked for.
struct Holding {
  std::string job;  // namespace/name
  int priority = 0;
  std::vector<GivablePod> pods;  // first those that it would rather give
  int least = 1;                 // so many that train it keeps
  std::vector<int> sizes;        // with which it trains, ascending; empty: with any
  bool whole = false;            // may be asked for all that it has
  Moment since;                  // has trained since then; max(): it has not begun
  friend bool operator==(const Holding&, const Holding&) = default;
};

// A pod that was taken from a job.
struct TakenPod {
  std::string uid;
  std::string name;
  std::string job;
  bool whole = false;  // with all others of the job
  friend bool operator==(const TakenPod&, const TakenPod&) = default;
};

// What the job needs to start.
struct Need {
  std::string job;
  int priority = 0;
  std::vector<std::shared_ptr<const Json>> pods;
  std::vector<ShapePtr> shapes;  // of the pods
};

struct Preemption {
  std::vector<TakenPod> taken;     // those of `before` that still have to go among them
  std::vector<std::string> nodes;  // where the pods of the need fit then
  std::optional<Moment> late_at;   // then one that is counted on has not gone in time
};

using Holdings = std::map<std::string, Holding>;  // by job

// Of the least important job that could be asked; nullopt: there is none.
std::optional<int> LowestPriority(const Holdings& holdings);

// What is decided about. It holds references: to be used while these live.
struct PreemptionCase {
  Capacity* capacity;
  const Need& need;
  const Holdings& holdings;
  const std::vector<TakenPod>& before;      // what was taken for the job earlier
  const std::set<std::string>& for_others;  // uids of what is taken for others
  Moment now;
};

// `whole`: jobs, less important than the need, that give all that they have; of the others goes
// only what they can do without. nullopt: the need can't have enough so, or nobody is less
// important.
std::optional<Preemption> PreemptWith(const std::set<std::string>& whole,
                                      const PreemptionCase& what);

}  // namespace ringmaster::scheduler
