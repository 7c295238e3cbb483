// Why the job has to wait, for the conditions of its status: the phases say it, WriteStatus() reads
// it.
//
// Plain values.
#pragma once

#include <string>

namespace ringmaster::planner {

// Written by size and admission.
struct WaitReasons {
  std::string preempted;     // which pods have just been asked to leave for whom; empty: none
  std::string kept_why;      // why pods are not created yet; empty: none is kept back
  std::string leavers;       // who makes room for it, for people; empty: nobody
  bool no_capacity = false;  // the nodes have no capacity left, that is
  std::string for_nodes;     // how an autoscaler is asked for nodes; empty: it is not
  std::string no_nodes;      // why the autoscaler makes none; empty: it has not refused
};

// Written by the recovery from quorum loss: what keeps the job from training that only a recovery
// or people can mend. An empty reason: nothing.
struct Stall {
  std::string reason;
  std::string message;
};

}  // namespace ringmaster::planner
