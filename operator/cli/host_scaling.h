// How many workers a job has whose hosts come and go: as many as there are slots, between its
// bounds. The pods that leave are those on hosts that offer fewer slots than they have pods.
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
  std::set<std::string> closed;        // nodes that are to have no workers

  int Sum() const;
};

struct ScaleStep {
  std::vector<std::string> drains;  // pods that are to be asked to leave
  std::optional<int> replicas;      // nothing: the job keeps its number of workers for now
};

// `workers`: what the job asks for now.
ScaleStep PlanScale(const NodeSlots& slots, const RunNodes& seen, const WorkerBounds& bounds,
                    int workers);

}  // namespace ringmaster::cli
