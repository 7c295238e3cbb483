// The facts about a run's nodes and its job's pods that matter for changing hosts, from the API
// server.
//
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

struct NodeSeen {
  bool cordoned = false;
  bool deleting = false;
  bool silent = false;  // its process was not heard of for a while
  std::string pods;     // allocatable pods, as the API server writes the number
};

struct PodSeen {
  std::string name, node;
  int index = 0;             // index in the job
  bool stays = true;         // it has not ended, and was not asked to leave
  bool drain_asked = false;  // an annotation asks it to leave
  bool drain_known = false;  // the operator has seen that annotation
  bool warned = false;       // its sidecar was told that it leaves
};

struct RunNodes {
  std::map<std::string, NodeSeen> nodes;  // by name
  std::vector<PodSeen> pods;
  std::set<std::string> troubled;  // nodes on which workers fail
};

// `job` is empty before the job is created; then there are no pods.
Outcome<RunNodes> ObserveRunNodes(kube::KubeApi* api, const std::string& ns, const std::string& job,
                                  std::chrono::system_clock::time_point now);

}  // namespace ringmaster::cli
