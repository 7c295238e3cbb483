#include "operator/scheduler/node_resources.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "operator/scheduler/node_rules.h"

namespace ringmaster::scheduler {
namespace {

constexpr std::size_t kMostReasons = 5;

// The reasons that keep the most nodes away; all of them, by name, if they are few.
std::vector<std::pair<std::string, int>> MostFrequent(const std::map<std::string, int>& refusals) {
  std::vector<std::pair<std::string, int>> most(refusals.begin(), refusals.end());
  if (most.size() <= kMostReasons) return most;
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  most.resize(kMostReasons);
  return most;
}

}  // namespace

NodeResources::Change NodeResources::Set(const Json& node) {
  const std::string name = fields::TextAt(node, "/metadata/name");
  Node& known = nodes_[name];
  Amounts allocatable = AmountsIn(fields::ObjectAt(node, "/status/allocatable"));
  const bool same_rules =
      known.object != nullptr && fields::At(*known.object, "/spec") == fields::At(node, "/spec") &&
      fields::At(*known.object, "/metadata/labels") == fields::At(node, "/metadata/labels");
  if (same_rules && known.allocatable == allocatable) return Change::kNone;  // only a heartbeat
  if (!same_rules) open_.clear();
  known.object = std::make_shared<const Json>(node);
  known.allocatable = std::move(allocatable);
  known.free.clear();
  CountFree(name, known.allocatable);
  if (const auto used = used_.find(name); used != used_.end()) CountFree(name, used->second);
  return same_rules ? Change::kAmounts : Change::kRules;
}

bool NodeResources::Remove(const std::string& name) {
  if (nodes_.erase(name) == 0) return false;
  open_.clear();
  return true;
}

bool NodeResources::IsOverfull(const std::string& node) const {
  const auto used = used_.find(node);
  const auto known = nodes_.find(node);
  if (used == used_.end() || known == nodes_.end()) return false;
  const Amounts& allocatable = known->second.allocatable;
  return std::any_of(used->second.begin(), used->second.end(), [&](const auto& amount) {
    return FreeOf(allocatable, used->second, amount.first) < -kRounding;
  });
}

double NodeResources::FreeOn(const std::string& node, const std::string& resource) const {
  static const Amounts kNothing;
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return 0;
  const auto used = used_.find(node);
  return FreeOf(known->second.allocatable, used == used_.end() ? kNothing : used->second, resource);
}

int NodeResources::CountOn(const std::string& node, const Amounts& requests) const {
  static const Amounts kNothing;
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return 0;
  const auto used = used_.find(node);
  return CountFits(known->second.allocatable, used == used_.end() ? kNothing : used->second,
                   requests);
}

std::string NodeResources::LabelOf(const std::string& node, const std::string& label) const {
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return "";
  return fields::Text(fields::ObjectAt(*known->second.object, "/metadata/labels"), label.c_str());
}

void NodeResources::Use(const std::string& node, const Amounts& requests) {
  Add(used_[node], requests);
  CountFree(node, requests);
}

bool NodeResources::Free(const std::string& node, const Amounts& requests) {
  const auto used = used_.find(node);
  if (used == used_.end()) return false;
  TakeOff(used->second, requests);
  if (used->second.empty()) used_.erase(used);
  CountFree(node, requests);
  return true;
}

// Most pods have the same node rules as others, so the result is cached by these rules.
const NodeResources::Open& NodeResources::Look(const Shape& shape) const {
  constexpr std::size_t kMost = 256;
  if (const auto known = open_.find(shape.rules); known != open_.end()) return known->second;
  if (open_.size() >= kMost) open_.clear();
  Open& open = open_[shape.rules];
  // No two pods of a DaemonSet have the same rules, and there may be one for each node.
  const std::string only = OnlyNodeOf(shape.pod);
  for (const auto& [name, node] : nodes_) {
    if (!only.empty() && name != only) {
      ++open.refusals[kOtherNode];
    } else if (std::string why = Refusal(shape.pod, *node.object); !why.empty()) {
      ++open.refusals[why];
    } else {
      open.nodes.push_back(name);
      open.states.push_back(&node);
    }
  }
  return open;
}

void NodeResources::CountFree(const std::string& node, const Amounts& resources) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return;
  static const Amounts kNothing;
  const auto at = used_.find(node);
  const Amounts& used = at == used_.end() ? kNothing : at->second;
  std::vector<double>& free = known->second.free;
  for (const auto& [resource, n] : resources) {
    const std::size_t number = shapes_.numbers().Of(resource);
    if (free.size() <= number) free.resize(number + 1);
    free[number] = FreeOf(known->second.allocatable, used, resource);
  }
}

tl::expected<std::string, std::string> NodeResources::Place(const Shape& shape) const {
  const Open& open = Look(shape);
  std::vector<int> insufficient(shape.wanted.size());
  const auto free_of = [](const Node& node, std::size_t resource) {
    return resource < node.free.size() ? node.free[resource] : 0;
  };
  std::size_t best = open.nodes.size();
  double best_cpu = 0;
  for (std::size_t i = 0; i < open.nodes.size(); ++i) {
    const Node& node = *open.states[i];
    bool fits = true;
    for (std::size_t r = 0; r < shape.wanted.size(); ++r) {
      const auto& [resource, n] = shape.wanted[r];
      if (free_of(node, resource) >= n - kRounding) continue;
      ++insufficient[r];
      fits = false;
    }
    const double cpu = free_of(node, ResourceNumbers::kCpu);
    if (!fits || (best < open.nodes.size() && cpu <= best_cpu)) continue;
    best = i;
    best_cpu = cpu;
  }
  if (best < open.nodes.size()) return open.nodes[best];
  return tl::unexpected(WhyNone(open, shape, insufficient));
}

// `insufficient` counts, for each wanted resource, the open nodes that have too little of it.
std::string NodeResources::WhyNone(const Open& open, const Shape& shape,
                                   const std::vector<int>& insufficient) const {
  std::map<std::string, int> refusals = open.refusals;
  std::size_t r = 0;
  for (const auto& [resource, n] : shape.requests) {
    if (n <= 0) continue;
    if (insufficient[r] > 0) refusals["Insufficient " + resource] = insufficient[r];
    ++r;
  }
  std::string list;
  for (const auto& [why, count] : MostFrequent(refusals)) {
    list += (list.empty() ? " " : ", ") + std::to_string(count) + " " + why;
  }
  if (refusals.size() > kMostReasons) {
    list += " and " + std::to_string(refusals.size() - kMostReasons) + " more reasons";
  }
  return "0/" + std::to_string(nodes_.size()) +
         " nodes are available:" + (list.empty() ? " no nodes" : list) + ".";
}

Amounts NodeResources::Total() const {
  Amounts total;
  for (const auto& [name, node] : nodes_) Add(total, node.allocatable);
  return total;
}

}  // namespace ringmaster::scheduler
