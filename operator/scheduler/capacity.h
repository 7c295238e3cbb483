// What the nodes have free, kept from nodes and pods as they come. It answers where a pod would
// fit, by the rules of the default scheduler that exclude nodes: unschedulable, taints, node
// selector, required node affinity, resources. What only ranks nodes, and what relates pods to each
// other (spreading, pod affinity), is the scheduler's and is left out: a yes here may still be a
// Pending there.
//
// Pure: objects in, answers out. A plain value; copy it to try something.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::scheduler {

using Json = nlohmann::json;
using Amounts = std::map<std::string, double>;  // by resource, "pods" included

// What a pod asks for, as Kubernetes counts it ("Effective Pod requests and limits" in its
// documentation; KEP-753 and KEP-2837): its containers and native sidecars together, or the init
// container that with the sidecars before it needs most; what spec.resources says of the whole pod
// comes before both; the overhead of its runtime is added. Of resources that are claimed (DRA) and
// of a pod that is being resized nothing is known here.
Amounts RequestsOf(const Json& pod);

class Capacity {
 public:
  void SetNode(const Json& node);
  void RemoveNode(const std::string& name);
  // A pod that has ended takes nothing; one without a node that may have one (no gates) is kept
  // apart: see PlaceFloating.
  void SetPod(const Json& pod);
  void RemovePod(const std::string& uid);

  // The node with the most free CPU among those that fit; else why not, in the words of the default
  // scheduler: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
  tl::expected<std::string, std::string> Place(const Json& pod) const;
  // As if the pod ran there.
  void Take(const Json& pod, const std::string& node);
  // Gives every pod that waits for the scheduler a place, so that nobody else counts on it. Those
  // that fit nowhere take nothing.
  void PlaceFloating();

 private:
  struct Node {
    Json object;  // metadata.labels, spec and status.allocatable are what is looked at
    Amounts allocatable;
  };
  struct Pod {
    std::string node;
    Amounts requests;
  };

  std::map<std::string, Node> nodes_;
  std::map<std::string, Pod> pods_;       // those with a node, by uid
  std::map<std::string, Json> floating_;  // those without, by uid
  std::map<std::string, Amounts> used_;   // by node
};

struct GangFit {
  int fit = 0;      // so many of the pods find a place at the same time
  std::string why;  // why the next one doesn't; empty: all fit
};

// How many of `pods` (in this order) fit beside all that runs or waits for the scheduler already.
GangFit FitTogether(Capacity capacity, const std::vector<Json>& pods);

}  // namespace ringmaster::scheduler
