// What training jobs have, and what they may be asked to give up (preemption.h). Values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/scheduler/moment.h"

namespace ringmaster::scheduler {

// A pod of a job that trains.
struct GivablePod {
  std::string uid;
  std::string name;
  bool trains = true;  // false: it has not joined the view yet, or is leaving it
  friend bool operator==(const GivablePod&, const GivablePod&) = default;
};

// What a training job has, and how much of that it may be asked to give.
struct Holding {
  std::string job;  // namespace/name
  int priority = 0;
  std::vector<GivablePod> pods;  // the pod that the job would give first comes first
  int least = 1;                 // the job keeps at least this many training pods
  std::vector<int> sizes;        // the sizes with which it trains, ascending; empty: any size
  bool whole = false;            // it may be asked for all its pods
  Moment since;                  // it has trained since then; max(): it has not begun
  friend bool operator==(const Holding&, const Holding&) = default;
};

using Holdings = std::map<std::string, Holding>;  // by job

}  // namespace ringmaster::scheduler
