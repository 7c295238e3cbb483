// What the nodes have free, kept from nodes and pods as they come. It answers where a pod would
// fit, by the rules of the default scheduler that exclude nodes: unschedulable, taints, node
// selector, required node affinity, resources. What only ranks nodes, and what relates pods to each
// other (spreading, pod affinity), is the scheduler's and is left out: a yes here may still be a
// Pending there.
//
// Pure: objects in, answers out. A plain value; copy it to try something.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
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

// "namespace/name" of an object.
std::string PathOf(const Json& object);

class Capacity {
 public:
  void SetNode(const Json& node);
  void RemoveNode(const std::string& name);
  // A pod that has ended takes nothing; one without a node that may have one (no gates) gets a
  // place by PlaceFloating, unless one is held for it.
  void SetPod(const Json& pod);
  void RemovePod(const std::string& uid);

  // The node with the most free CPU among those that fit; else why not, in the words of the default
  // scheduler: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
  tl::expected<std::string, std::string> Place(const Json& pod) const;
  // As if the pod ran there: a place is held for it, by its path, until it runs, ends, is deleted
  // or Release is called.
  void Hold(const Json& pod, const std::string& node);
  void Release(const std::string& path);
  bool Holds(const std::string& path) const { return held_.count(path) != 0; }
  // Holds a place for every pod that waits for the scheduler, so that nobody else counts on it.
  // Those that fit nowhere take nothing.
  void PlaceFloating();

  // Something may fit now that did not fit the last time that this was asked.
  bool HasGrown() const { return grown_; }
  bool TakeGrown() { return std::exchange(grown_, false); }

 private:
  struct Node {
    std::shared_ptr<const Json> object;  // metadata.labels and spec are what is looked at
    Amounts allocatable;
  };
  // There may be very many pods, and few that differ.
  using Shared = std::shared_ptr<const Amounts>;
  struct Pod {
    std::shared_ptr<const std::string> node;
    Shared requests;
  };
  struct Held {
    std::string uid;  // empty: it is still to be made
    std::string node;
    Shared requests;
  };
  struct Open {
    std::vector<std::string> nodes;
    std::map<std::string, int> refusals;
  };

  Shared Share(Amounts requests);
  const Open& OpenTo(const Json& pod) const;
  void Use(const std::string& node, const Amounts& requests, double sign);
  void Adjust(Held* held, Amounts requests);
  void Occupy(const std::string& uid, const std::string& node, Amounts requests);

  std::map<std::string, Node> nodes_;
  std::unordered_map<std::string, Pod> pods_;   // those with a node, by uid
  std::map<std::string, Held> held_;            // by path
  std::map<std::string, std::string> waiting_;  // uid to path, of pods that a place is held for
  std::map<std::string, Json> floating_;        // those without any, by uid
  std::map<std::string, Amounts> used_;         // by node
  std::map<Amounts, std::weak_ptr<const Amounts>> shared_;
  std::map<std::string, std::shared_ptr<const std::string>> names_;  // of nodes, as pods have them
  mutable std::map<std::string, Open> open_;  // by what a pod says of nodes; as long as they stay
  bool grown_ = true;
};

struct GangFit {
  int fit = 0;      // so many of the pods find a place at the same time, and may have it
  std::string why;  // why the next one doesn't; empty: all fit
  int tried = 0;    // so many were found a place, before it was not enough of them
};

// How many of `pods` (in this order) fit beside all that runs or waits for the scheduler already.
GangFit FitTogether(Capacity capacity, const std::vector<Json>& pods);

}  // namespace ringmaster::scheduler
