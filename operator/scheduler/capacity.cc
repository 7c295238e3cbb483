#include "operator/scheduler/capacity.h"

#include <algorithm>

#include "operator/scheduler/node_rules.h"
#include "operator/scheduler/quantity.h"

namespace ringmaster::scheduler {
namespace {

constexpr double kRounding = 1e-9;  // of amounts that were summed up in another order

const Json kNone = Json::object();
const Json kEmpty = Json::array();

std::string Text(const Json& object, const char* path) {
  return object.value(Json::json_pointer(path), "");
}

bool HasEnded(const Json& pod) {
  const std::string phase = Text(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

void Add(Amounts& to, const Amounts& amounts, double sign) {
  for (const auto& [resource, n] : amounts) to[resource] += sign * n;
}

double FreeOf(const Amounts& allocatable, const Amounts& used, const std::string& resource) {
  const auto have = allocatable.find(resource), taken = used.find(resource);
  return (have == allocatable.end() ? 0 : have->second) -
         (taken == used.end() ? 0 : taken->second);
}

}  // namespace

Amounts RequestsOf(const Json& pod) {
  Amounts total, init;
  const Json spec = pod.value("spec", kNone);
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : spec.value(list, kEmpty)) {
      const bool runs_on =
          list == std::string_view("containers") || container.value("restartPolicy", "") == "Always";
      const Json requests = container.value("resources", kNone).value("requests", kNone);
      for (const auto& [resource, amount] : requests.items()) {
        const double n = ParseQuantity(amount);
        if (runs_on) {
          total[resource] += n;
        } else {
          init[resource] = std::max(init[resource], n);
        }
      }
    }
  }
  for (const auto& [resource, n] : init) total[resource] = std::max(total[resource], n);
  total["pods"] = 1;
  return total;
}

void Capacity::SetNode(const Json& node) {
  Node& known = nodes_[Text(node, "/metadata/name")];
  known.object = node;
  known.allocatable.clear();
  const Json allocatable = node.value("/status/allocatable"_json_pointer, kNone);
  for (const auto& [resource, amount] : allocatable.items()) {
    known.allocatable[resource] = ParseQuantity(amount);
  }
}

void Capacity::RemoveNode(const std::string& name) { nodes_.erase(name); }

void Capacity::SetPod(const Json& pod) {
  const std::string uid = Text(pod, "/metadata/uid"), node = Text(pod, "/spec/nodeName");
  RemovePod(uid);
  if (HasEnded(pod)) return;
  if (!node.empty()) {
    Take(pod, node);
  } else if (pod.value("/spec/schedulingGates"_json_pointer, kEmpty).empty() &&
             Text(pod, "/metadata/deletionTimestamp").empty()) {
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
  const std::string uid = Text(pod, "/metadata/uid");
  RemovePod(uid);
  Pod& taken = pods_[uid] = {node, RequestsOf(pod)};
  Add(used_[node], taken.requests, 1);
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
