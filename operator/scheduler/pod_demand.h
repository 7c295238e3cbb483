// A demand on a job to give up a pod. A value.
#pragma once

#include <string>

namespace ringmaster::scheduler {

// A pod that a job is to give up, and the job that it makes room for.
struct PodDemand {
  std::string uid;
  std::string job;  // the job that needs the room: namespace/name
  int priority = 0;
  int needs = 0;       // the number of pods that this job needs to start
  bool whole = false;  // the giving job gives up all its other pods, too
  friend bool operator==(const PodDemand&, const PodDemand&) = default;
};

}  // namespace ringmaster::scheduler
