// Whether all has come about that must, a while after the last fault: all workers train in one
// view, or the job has ended.
//
// Owner: World. One thread.
#pragma once

#include <string>

#include "tests/sim/decided_views.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/journal.h"
#include "tests/sim/kubelets.h"
#include "tests/sim/pod.h"
#include "tests/sim/pods.h"
#include "tests/sim/script.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class EndCheck {
 public:
  // All of them outlive it.
  struct Parts {
    Timeline& time;
    Journal& journal;
    const Pods& pods;
    DecidedViews& views;
    const Script& script;
    const FaultPlan& plan;
    const JobSize& job;
    const Kubelets& kubelets;
  };
  explicit EndCheck(const Parts& parts) : parts_(parts) {}

  // Looks now and then, once faults are over, until all is as it must be or it has taken too long.
  void Begin();
  bool over() const { return over_; }

 private:
  void Look();
  // False: *why says what is missing.
  bool Healthy(std::string* why);
  bool PodHealthy(const SimPod& pod, std::string* why);
  bool JobHealthy(std::string* why);
  // Writes down how everything stands, for people.
  void TraceEnd();

  const Parts parts_;
  bool over_ = false;  // the schedule has come to a good end
};

}  // namespace ringmaster::app::sim
