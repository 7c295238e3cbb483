// What each node has of each resource, what is used of it, and which nodes are open to which pods,
// by the rules of the default scheduler that exclude nodes: unschedulable, taints, node selector,
// required node affinity, resources.
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
  enum class Change { kNone, kAmounts, kRules };  // kRules: its amounts may be others too
  Change Set(const Json& node);
  // False: there is no such node. What is used on it stays known, for when it comes back.
  bool Remove(const std::string& name);

  void Use(const std::string& node, const Amounts& requests);
  // False: nothing was used there.
  bool Free(const std::string& node, const Amounts& requests);

  ShapePtr ShapeOf(const Json& pod) { return shapes_.Of(pod, &numbers_); }
  ShapePtr ShapeOn(const Shape& shape, const std::string& label, const std::string& value) {
    return shapes_.On(shape, label, value, &numbers_);
  }
  // The node with the most free CPU among those that fit; else why not, in the words of the default
  // scheduler: "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
  tl::expected<std::string, std::string> Place(const Shape& shape) const;
  // Nodes that are open to pods of this shape, resources apart.
  const std::vector<std::string>& OpenTo(const Shape& shape) const { return Look(shape).nodes; }

  // More is used than there is.
  bool IsOverfull(const std::string& node) const;
  // So much of the resource has the node free; below 0: it is overfull.
  double FreeOn(const std::string& node, const std::string& resource) const;
  // So many pods that ask for this fit on it beside what is used.
  int CountOn(const std::string& node, const Amounts& requests) const;
  // The value of a node's label; empty: it has none.
  std::string LabelOf(const std::string& node, const std::string& label) const;
  // Of a node that is there.
  const Amounts& AllocatableOf(const std::string& node) const {
    return nodes_.at(node).allocatable;
  }
  Amounts Total() const;  // of all nodes that are there
  bool Has(const std::string& node) const { return nodes_.count(node) != 0; }
  const std::map<std::string, Amounts>& used() const { return used_; }  // by node

 private:
  struct Node {
    std::shared_ptr<const Json> object;  // metadata.labels and spec are what is looked at
    Amounts allocatable;
    std::vector<double> free;  // by number of the resource; of those beyond its end nothing
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

  void CountFree(const std::string& node, const Amounts& resources);
  const Open& Look(const Shape& shape) const;
  std::string WhyNone(const Open& open, const Shape& shape,
                      const std::vector<int>& insufficient) const;

  std::map<std::string, Node> nodes_;
  std::map<std::string, Amounts> used_;  // by node
  ResourceNumbers numbers_;
  Shapes shapes_;
  mutable OpenCache open_;  // by what a pod says of nodes; as long as they stay
};

}  // namespace ringmaster::scheduler
