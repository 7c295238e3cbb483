// The answer to a job that asks for places for its pods. A value.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::scheduler {

struct GangFit {
  int fit = 0;         // so many of the pods find a place at the same time, and may have it
  std::string why;     // why the next one doesn't; empty: all fit
  int tried = 0;       // so many were found a place, before it was not enough of them
  std::string domain;  // where they have to be near each other: the label's value; empty: anywhere
  // So many of its pods as it needs to start may stand Pending all the same, so that an autoscaler
  // makes nodes for them.
  bool calls_for_nodes = false;
  bool decided = true;  // false: it stands in line, and its turn hasn't come
  // Pods of less important jobs that leave to make room for it.
  struct Leaver {
    std::string job;  // namespace/name
    std::string pod;
    bool whole = false;  // with all others of that job
    friend bool operator==(const Leaver&, const Leaver&) = default;
  };
  std::vector<Leaver> leavers;
};

}  // namespace ringmaster::scheduler
