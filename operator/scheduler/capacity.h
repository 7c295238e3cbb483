// What the nodes have free, kept from nodes and pods as they come. It answers where a pod would
// fit, by the rules of the default scheduler that exclude nodes: unschedulable, taints, node
// selector, required node affinity, resources. What only ranks nodes, and what relates pods to each
// other (spreading, pod affinity), is the scheduler's and is left out: a yes here may still be a
// Pending there.
//
// Pure: objects in, answers out. A plain value; copy it to try something.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ringmaster::scheduler {

using Json = nlohmann::json;
using Moment = std::chrono::system_clock::time_point;
using Amounts = std::map<std::string, double>;  // by resource, "pods" included

// What a pod asks for, as Kubernetes counts it ("Effective Pod requests and limits" in its
// documentation; KEP-753 and KEP-2837): its containers and native sidecars together, or the init
// container that with the sidecars before it needs most; what spec.resources says of the whole pod
// comes before both; the overhead of its runtime is added. Of resources that are claimed (DRA) and
// of a pod that is being resized nothing is known here.
Amounts RequestsOf(const Json& pod);

// "namespace/name" of an object.
std::string PathOf(const Json& object);

// What decides where a pod fits. Pods of one shape find the same nodes open.
struct Shape {
  Amounts requests;
  Json pod;                                            // spec: what it says of nodes
  std::string rules;                                   // the same, as text
  std::vector<std::pair<std::size_t, double>> wanted;  // requests, by number of the resource
};
// Of one Capacity: equal shapes are the same object for as long as somebody holds it.
using ShapePtr = std::shared_ptr<const Shape>;

// How many pods that ask for this fit into what is allocatable and not used.
int CountFits(const Amounts& allocatable, const Amounts& used, const Amounts& requests);

class Capacity {
 public:
  // Places that are held on a node that isn't what it was, and that it has no room for any more,
  // move to another one; where there is none, they are given up: TakeLost.
  void SetNode(const Json& node);
  void RemoveNode(const std::string& name);
  // A pod that has ended takes nothing; one without a node that may have one (no gates) gets a
  // place by PlaceFloating, unless one is held for it. `job`: whose it is; empty: somebody else's.
  // `leaves_by`: it is about to go, and has gone by then if nothing hangs.
  void SetPod(const Json& pod, const std::string& job = "",
              std::optional<Moment> leaves_by = std::nullopt);
  void RemovePod(const std::string& uid);

  ShapePtr ShapeOf(const Json& pod);
  // The node with the most free CPU among those that fit; else why not, in the words of the default
  // scheduler: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
  tl::expected<std::string, std::string> Place(const Shape& shape) const;
  tl::expected<std::string, std::string> Place(const Json& pod) const;
  // As if the pod ran there: a place is held for it, by its path, until it runs, ends, is deleted
  // or Release is called.
  void Hold(const Json& pod, const ShapePtr& shape, const std::string& node,
            const std::string& job);
  void Hold(const Json& pod, const std::string& node) { Hold(pod, ShapeOf(pod), node, ""); }
  void Release(const std::string& path);
  // The same for what was held only to see whether it fits: nothing has grown.
  void Undo(const std::string& path);
  bool Holds(const std::string& path) const { return held_.count(path) != 0; }
  // A place is held for the pod, which has been made and may start.
  bool HoldsForMade(const std::string& path) const;
  // Holds a place for every pod that waits for the scheduler, so that nobody else counts on it.
  // Those that fit nowhere take nothing, and are tried again when something has grown.
  void PlaceFloating();

  // Pods that have a node and are about to go: by when, by uid.
  const std::map<std::string, Moment>& leaving() const { return leaving_; }
  struct Placement {
    std::string node;
    Amounts requests;
  };
  // Of a pod that has a node; null: there is none of this uid.
  std::optional<Placement> PlacementOf(const std::string& uid) const;
  // What the pod takes is free, as if it had gone, and then taken again. For WhatIf: nothing has
  // grown.
  void TakeOut(const std::string& uid);
  void PutBack(const std::string& uid);
  // More is used than there is.
  bool IsOverfull(const std::string& node) const;
  // So much of the resource has the node free; below 0: it is overfull.
  double FreeOn(const std::string& node, const std::string& resource) const;

  // Something may fit now that did not fit the last time that this was asked.
  bool HasGrown() const { return growth_ != growth_seen_; }
  bool TakeGrown() { return std::exchange(growth_seen_, growth_) != growth_; }
  // A place that was held for a pod that isn't made, or may not start yet, is gone with its node.
  bool HasLost() const { return lost_; }
  bool TakeLost() { return std::exchange(lost_, false); }

  struct Node {
    std::shared_ptr<const Json> object;  // metadata.labels and spec are what is looked at
    Amounts allocatable;
    std::vector<double> free;  // by number of the resource; of those beyond its end nothing
  };
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  const std::map<std::string, Amounts>& used() const { return used_; }  // by node
  // Nodes that are open to pods of this shape, resources apart.
  const std::vector<std::string>& OpenNodes(const Shape& shape) const {
    return OpenTo(shape).nodes;
  }
  // All that takes something for a job: its pods, and the places that are held for them.
  using Taker =
      std::function<void(const std::string& job, const std::string& node, const Amounts& requests)>;
  void ForEachOfJobs(const Taker& taker) const;
  std::size_t places_held() const { return held_.size(); }

 private:
  // There may be very many pods, and few that differ.
  using Shared = std::shared_ptr<const Amounts>;
  using Name = std::shared_ptr<const std::string>;
  struct Pod {
    Name node;
    Name job;  // null: somebody else's
    Shared requests;
  };
  struct Held {
    std::string uid;  // empty: it is still to be made
    bool gated = false;
    std::string node;
    std::string job;
    ShapePtr shape;
  };
  struct Floating {
    std::string path;
    std::string job;
    ShapePtr shape;
  };
  struct Open {
    std::vector<std::string> nodes;
    std::vector<const Node*> states;  // of these nodes
    std::map<std::string, int> refusals;
  };
  // Points into the object that it is of: a copy of that begins without.
  struct OpenCache : std::map<std::string, Open> {
    OpenCache() = default;
    OpenCache(const OpenCache& /*other*/) : std::map<std::string, Open>() {}
    OpenCache& operator=(const OpenCache& /*other*/) {
      clear();
      return *this;
    }
  };

  Shared Share(Amounts requests);
  Name Intern(const std::string& name);
  Shape MakeShape(Amounts requests, Json rules, std::string text) const;
  std::size_t NumberOf(const std::string& resource) const;
  void CountFree(const std::string& node, const Amounts& resources);
  const Open& OpenTo(const Shape& shape) const;
  std::string WhyNone(const Open& open, const Shape& shape,
                      const std::vector<int>& insufficient) const;
  void Use(const std::string& node, const Amounts& requests);
  void Free(const std::string& node, const Amounts& requests);
  void MoveHeldOn(const std::string& node, const std::function<bool(const Held&)>& which);

  std::map<std::string, Node> nodes_;
  std::unordered_map<std::string, Pod> pods_;   // those with a node, by uid
  std::map<std::string, Moment> leaving_;       // of pods_, by uid
  std::map<std::string, Held> held_;            // by path
  std::map<std::string, std::string> waiting_;  // uid to path, of pods that a place is held for
  std::map<std::string, Floating> floating_;    // those without any, by uid
  std::map<std::string, Amounts> used_;         // by node
  mutable std::map<std::string, std::size_t> resources_ = {{"cpu", 0}};  // their numbers
  std::map<Amounts, std::weak_ptr<const Amounts>> shared_;
  std::map<std::pair<std::string, Amounts>, std::weak_ptr<const Shape>> shapes_;
  std::map<std::string, Name> names_;  // of nodes and jobs, as pods have them
  mutable OpenCache open_;             // by what a pod says of nodes; as long as they stay
  std::uint64_t growth_ = 1;           // so often something has become free
  std::uint64_t growth_seen_ = 0;
  std::uint64_t floating_tried_ = 0;  // growth_ when the floating pods were tried last; 0: not all
  bool lost_ = false;
};

struct GangFit {
  int fit = 0;          // so many of the pods find a place at the same time, and may have it
  std::string why;      // why the next one doesn't; empty: all fit
  int tried = 0;        // so many were found a place, before it was not enough of them
  bool decided = true;  // false: it stands in line, and its turn hasn't come
  // Pods of less important jobs that leave to make room for it.
  struct Leaver {
    std::string job;  // namespace/name
    std::string pod;
    friend bool operator==(const Leaver&, const Leaver&) = default;
  };
  std::vector<Leaver> leavers;
};

// How many of `pods` (in this order) fit beside all that runs or waits for the scheduler already.
GangFit FitTogether(Capacity capacity, const std::vector<Json>& pods);

}  // namespace ringmaster::scheduler
