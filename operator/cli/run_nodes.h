// What the API server says of a run's nodes and of its job's pods, as far as hosts that come and go
// depend on it.
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
  bool silent = false;  // nothing has been heard of its process for a while
  std::string pods;     // allocatable, as the API server writes it
};

struct PodSeen {
  std::string name, node;
  int index = 0;             // in the job
  bool stays = true;         // it has not ended, and nobody has asked it to leave
  bool drain_asked = false;  // by an annotation
  bool drain_known = false;  // the operator has seen that
  bool warned = false;       // its sidecar has been told that it leaves
};

struct RunNodes {
  std::map<std::string, NodeSeen> nodes;  // by name
  std::vector<PodSeen> pods;
  std::set<std::string> troubled;  // nodes on which workers fail
};

// `job`: empty before it is made; there are no pods then.
Outcome<RunNodes> ObserveRunNodes(kube::KubeApi* api, const std::string& ns, const std::string& job,
                                  std::chrono::system_clock::time_point now);

}  // namespace ringmaster::cli
