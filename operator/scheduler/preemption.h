// Which pods less important jobs give up so that a job that waits can start: pods above what they
// need to train, never more. Lowest priority first, and of those as few as will do, on the nodes
// where that takes the fewest. All or nothing: where it would not suffice, nothing is taken.
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
  friend bool operator==(const Holding&, const Holding&) = default;
};

// A pod that was taken from a job.
struct TakenPod {
  std::string uid;
  std::string name;
  std::string job;
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

// `before`: what was taken for the job earlier. `for_others`: uids of what is taken for others.
// nullopt: it can't have enough, or there is nobody less important.
std::optional<Preemption> Preempt(Capacity* capacity, const Need& need, const Holdings& holdings,
                                  const std::vector<TakenPod>& before,
                                  const std::set<std::string>& for_others, Moment now);

}  // namespace ringmaster::scheduler
