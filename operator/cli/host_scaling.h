// Decides how many workers a job with changing hosts has: one per slot, within its bounds. Pods
// leave from hosts that have more pods than they offer slots.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/cli/run_nodes.h"

namespace ringmaster::cli {

struct WorkerBounds {
  int min = 1, max = 1;
};

struct NodeSlots {
  std::map<std::string, int> offered;  // by node
  std::set<std::string> closed;        // nodes that must not have workers

  int Sum() const;
};

struct ScaleStep {
  std::vector<std::string> drains;  // pods to drain
  std::optional<int> replicas;      // none: the number of workers stays as it is for now
};

// `workers` is the job's present number of workers.
ScaleStep PlanScale(const NodeSlots& slots, const RunNodes& seen, const WorkerBounds& bounds,
                    int workers);

}  // namespace ringmaster::cli
