#include "operator/scheduler/capacity.h"

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/scheduler/node_rules.h"
#include "operator/scheduler/quantity.h"

namespace ringmaster::scheduler {
namespace {

constexpr double kRounding = 1e-9;  // of amounts that were summed up in another order

bool HasEnded(const Json& pod) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

void Add(Amounts& to, const Amounts& amounts, double sign = 1) {
  for (const auto& [resource, n] : amounts) to[resource] += sign * n;
}

void Raise(Amounts& to, const Amounts& amounts) {
  for (const auto& [resource, n] : amounts) to[resource] = std::max(to[resource], n);
}

Amounts AmountsIn(const Json& quantities) {
  Amounts amounts;
  for (const auto& [resource, amount] : quantities.items()) {
    amounts[resource] = ParseQuantity(amount);
  }
  return amounts;
}

// Of a container, or of a pod's spec.
Amounts OwnRequests(const Json& object) {
  return AmountsIn(fields::ObjectAt(object, "/resources/requests"));
}

// What a pod's spec.resources may say: of anything else the containers' requests count.
bool IsOfPods(const std::string& resource) {
  return resource == "cpu" || resource == "memory" || resource.rfind("hugepages-", 0) == 0;
}

double FreeOf(const Amounts& allocatable, const Amounts& used, const std::string& resource) {
  const auto have = allocatable.find(resource), taken = used.find(resource);
  return (have == allocatable.end() ? 0 : have->second) - (taken == used.end() ? 0 : taken->second);
}

}  // namespace

Amounts RequestsOf(const Json& pod) {
  const Json& spec = fields::Object(pod, "spec");
  Amounts total, sidecars, init;
  for (const Json& container : fields::List(spec, "containers")) Add(total, OwnRequests(container));
  for (const Json& container : fields::List(spec, "initContainers")) {
    const Amounts own = OwnRequests(container);
    if (container.value("restartPolicy", "") == "Always") {
      Add(sidecars, own);
      Add(total, own);
    } else {  // runs beside the sidecars before it, and ends before anything after it begins
      Amounts then = sidecars;
      Add(then, own);
      Raise(init, then);
    }
  }
  Raise(total, init);
  for (const auto& [resource, n] : OwnRequests(spec)) {
    if (IsOfPods(resource)) total[resource] = n;
  }
  Add(total, AmountsIn(fields::Object(spec, "overhead")));
  total["pods"] = 1;
  return total;
}

void Capacity::SetNode(const Json& node) {
  Node& known = nodes_[fields::TextAt(node, "/metadata/name")];
  known.object = node;
  known.allocatable = AmountsIn(fields::ObjectAt(node, "/status/allocatable"));
}

void Capacity::RemoveNode(const std::string& name) { nodes_.erase(name); }

void Capacity::SetPod(const Json& pod) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName");
  RemovePod(uid);
  if (HasEnded(pod)) return;
  if (!node.empty()) {
    Take(pod, node);
  } else if (fields::ListAt(pod, "/spec/schedulingGates").empty() &&
             fields::TextAt(pod, "/metadata/deletionTimestamp").empty()) {
    floating_[uid] = pod;
  }
}

void Capacity::RemovePod(const std::string& uid) {
  floating_.erase(uid);
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return;
  Add(used_[known->second.node], known->second.requests, -1);
  pods_.erase(known);
}

void Capacity::Take(const Json& pod, const std::string& node) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid");
  RemovePod(uid);
  Pod& taken = pods_[uid] = {node, RequestsOf(pod)};
  Add(used_[node], taken.requests);
}

void Capacity::PlaceFloating() {
  const auto waiting = floating_;
  for (const auto& [uid, pod] : waiting) {
    if (const auto node = Place(pod)) Take(pod, *node);
  }
}

tl::expected<std::string, std::string> Capacity::Place(const Json& pod) const {
  const Amounts wanted = RequestsOf(pod);
  std::map<std::string, int> refusals;
  const std::string* best = nullptr;
  double best_cpu = 0;
  for (const auto& [name, node] : nodes_) {
    if (std::string why = Refusal(pod, node.object); !why.empty()) {
      ++refusals[why];
      continue;
    }
    const auto at = used_.find(name);
    const Amounts& used = at == used_.end() ? Amounts{} : at->second;
    bool fits = true;
    for (const auto& [resource, n] : wanted) {
      if (n <= 0 || FreeOf(node.allocatable, used, resource) >= n - kRounding) continue;
      ++refusals["Insufficient " + resource];
      fits = false;
    }
    const double cpu = FreeOf(node.allocatable, used, "cpu");
    if (fits && (best == nullptr || cpu > best_cpu)) {
      best = &name;
      best_cpu = cpu;
    }
  }
  if (best != nullptr) return *best;
  std::string list;
  for (const auto& [why, count] : refusals) {
    list += (list.empty() ? " " : ", ") + std::to_string(count) + " " + why;
  }
  return tl::unexpected("0/" + std::to_string(nodes_.size()) +
                        " nodes are available:" + (list.empty() ? " no nodes" : list) + ".");
}

GangFit FitTogether(Capacity capacity, const std::vector<Json>& pods) {
  capacity.PlaceFloating();
  GangFit result;
  for (const Json& pod : pods) {
    const auto node = capacity.Place(pod);
    if (!node) {
      result.why = node.error();
      break;
    }
    capacity.Take(pod, *node);
    ++result.fit;
  }
  return result;
}

}  // namespace ringmaster::scheduler
