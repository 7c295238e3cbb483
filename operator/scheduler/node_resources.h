// What each node has of each resource, how much of it is used, and which nodes are open to which
// pods by those rules of the default scheduler that exclude nodes: unschedulable, taints, node
// selector, required node affinity, resources.
//
// Pure. A plain value; copy it to try something.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "operator/scheduler/shape.h"

namespace ringmaster::scheduler {

class NodeResources {
 public:
  enum class Change { kNone, kAmounts, kRules };  // kRules: the amounts may have changed, too
  Change Set(const Json& node);
  // Returns false if there is no such node. What is used on it is remembered in case it comes back.
  bool Remove(const std::string& name);

  void Use(const std::string& node, const Amounts& requests);
  // Returns false if nothing was used there.
  bool Free(const std::string& node, const Amounts& requests);

  // The shapes of the pods that are asked about: Place and OpenTo take no others.
  Shapes& shapes() { return shapes_; }
  // Returns the node with the most free CPU among those where the pod fits, or the reason why it
  // fits nowhere, in the words of the default scheduler: "0/2 nodes are available: 1 Insufficient
  // cpu, 1 node(s) were unschedulable."
  tl::expected<std::string, std::string> Place(const Shape& shape) const;
  // The nodes that are open to pods of this shape, whatever resources they have free.
  const std::vector<std::string>& OpenTo(const Shape& shape) const { return Look(shape).nodes; }

  // More of a resource is used than the node has.
  bool IsOverfull(const std::string& node) const;
  // How much of the resource is free on the node; negative if it is overfull.
  double FreeOn(const std::string& node, const std::string& resource) const;
  // How many pods with these requests fit on the node beside what is used.
  int CountOn(const std::string& node, const Amounts& requests) const;
  // The value of a node's label; empty if it has none.
  std::string LabelOf(const std::string& node, const std::string& label) const;
  // The node must exist.
  const Amounts& AllocatableOf(const std::string& node) const {
    return nodes_.at(node).allocatable;
  }
  Amounts Total() const;  // of all existing nodes
  bool Has(const std::string& node) const { return nodes_.count(node) != 0; }
  const std::map<std::string, Amounts>& used() const { return used_; }  // by node

 private:
  struct Node {
    std::shared_ptr<const Json> object;  // only metadata.labels and spec are read
    Amounts allocatable;
    std::vector<double> free;  // by number of the resource; 0 for resources beyond the end
  };
  struct Open {
    std::vector<std::string> nodes;
    std::vector<const Node*> states;  // of these nodes
    std::map<std::string, int> refusals;
  };
  // The cache points into nodes_ of its object, so a copy of the object starts with an empty cache.
  struct OpenCache : std::map<std::string, Open> {
    OpenCache() = default;
    OpenCache(const OpenCache& /*other*/) : std::map<std::string, Open>() {}
    OpenCache& operator=(const OpenCache& /*other*/) {
      clear();
      return *this;
    }
  };

  void CountFree(const std::string& node, const Amounts& resources);
  const Open& Look(const Shape& shape) const;
  std::string WhyNone(const Open& open, const Shape& shape,
                      const std::vector<int>& insufficient) const;

  std::map<std::string, Node> nodes_;
  std::map<std::string, Amounts> used_;  // by node
  Shapes shapes_;
  mutable OpenCache open_;  // by the node rules of a shape; cleared when a node's rules change
};

}  // namespace ringmaster::scheduler
