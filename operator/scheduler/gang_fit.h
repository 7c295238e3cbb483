// The answer to a job that asks for places for its pods. A value.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::scheduler {

struct GangFit {
  int fit = 0;      // this many of the pods find places at the same time, and may start
  std::string why;  // why the next pod may not; empty: all fit
  int tried = 0;    // places were found for this many pods, including those given back because they
                    // were too few
  std::string domain;  // value of the topology label where the pods must run; empty: anywhere
  // As many of its pods as it needs to start may stand Pending although they don't fit, so that an
  // autoscaler makes nodes for them.
  bool calls_for_nodes = false;
  bool decided = true;  // false: the job stands in line, and no pass has decided yet
  // A pod of a less important job that leaves to make room for this job.
  struct Leaver {
    std::string job;  // namespace/name
    std::string pod;
    bool whole = false;  // that job gives up all its other pods, too
    friend bool operator==(const Leaver&, const Leaver&) = default;
  };
  std::vector<Leaver> leavers;
};

}  // namespace ringmaster::scheduler
