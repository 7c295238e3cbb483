#include "operator/scheduler/capacity.h"

#include <algorithm>
#include <utility>

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

std::string PathOf(const Json& object) {
  return fields::TextAt(object, "/metadata/namespace") + "/" +
         fields::TextAt(object, "/metadata/name");
}

void Capacity::SetNode(const Json& node) {
  Node& known = nodes_[fields::TextAt(node, "/metadata/name")];
  Amounts allocatable = AmountsIn(fields::ObjectAt(node, "/status/allocatable"));
  const bool same_rules =
      known.object != nullptr && fields::At(*known.object, "/spec") == fields::At(node, "/spec") &&
      fields::At(*known.object, "/metadata/labels") == fields::At(node, "/metadata/labels");
  if (same_rules && known.allocatable == allocatable) return;  // a heartbeat
  if (!same_rules) open_.clear();
  known.object = std::make_shared<const Json>(node);
  known.allocatable = std::move(allocatable);
  grown_ = true;
}

void Capacity::RemoveNode(const std::string& name) {
  nodes_.erase(name);
  open_.clear();
}

void Capacity::SetPod(const Json& pod) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName"), path = PathOf(pod);
  if (HasEnded(pod)) return RemovePod(uid);
  if (!node.empty()) {
    Amounts requests = RequestsOf(pod);
    const auto known = pods_.find(uid);
    if (known != pods_.end() && *known->second.node == node &&
        *known->second.requests == requests) {
      return;  // it goes on
    }
    if (const auto held = held_.find(path); held != held_.end()) {
      if (held->second.uid.empty() || held->second.uid == uid) Release(path);
    }
    RemovePod(uid);
    return Occupy(uid, node, std::move(requests));
  }
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  const bool going = !fields::TextAt(pod, "/metadata/deletionTimestamp").empty();
  if (going) return RemovePod(uid);
  floating_.erase(uid);
  if (const auto held = held_.find(path); held != held_.end()) {
    held->second.uid = uid;
    waiting_[uid] = path;
    if (!gated) Adjust(&held->second, RequestsOf(pod));
  } else if (!gated) {
    floating_[uid] = pod;
  }
}

void Capacity::RemovePod(const std::string& uid) {
  floating_.erase(uid);
  if (const auto waits = waiting_.find(uid); waits != waiting_.end()) {
    const auto held = held_.find(waits->second);
    if (held != held_.end() && held->second.uid == uid) Release(std::string(waits->second));
    waiting_.erase(uid);
  }
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return;
  Use(*known->second.node, *known->second.requests, -1);
  pods_.erase(known);
}

void Capacity::Hold(const Json& pod, const std::string& node) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"), path = PathOf(pod);
  Release(path);
  floating_.erase(uid);
  Held& held = held_[path] = {uid, node, Share(RequestsOf(pod))};
  if (!uid.empty()) waiting_[uid] = path;
  Use(node, *held.requests, 1);
}

void Capacity::Release(const std::string& path) {
  const auto held = held_.find(path);
  if (held == held_.end()) return;
  Use(held->second.node, *held->second.requests, -1);
  waiting_.erase(held->second.uid);
  held_.erase(held);
}

// The API server has added defaults, or a gate of somebody else is gone.
void Capacity::Adjust(Held* held, Amounts requests) {
  if (*held->requests == requests) return;
  Use(held->node, *held->requests, -1);
  held->requests = Share(std::move(requests));
  Use(held->node, *held->requests, 1);
}

void Capacity::PlaceFloating() {
  const auto waiting = floating_;
  for (const auto& [uid, pod] : waiting) {
    if (const auto node = Place(pod)) Hold(pod, *node);
  }
}

void Capacity::Use(const std::string& node, const Amounts& requests, double sign) {
  Add(used_[node], requests, sign);
  grown_ = grown_ || sign < 0;
}

void Capacity::Occupy(const std::string& uid, const std::string& node, Amounts requests) {
  auto& name = names_[node];
  if (name == nullptr) name = std::make_shared<const std::string>(node);
  Pod& pod = pods_[uid] = {name, Share(std::move(requests))};
  Use(node, *pod.requests, 1);
}

Capacity::Shared Capacity::Share(Amounts requests) {
  constexpr std::size_t kMost = 1024;
  if (shared_.size() > kMost) {
    std::erase_if(shared_, [](const auto& known) { return known.second.expired(); });
  }
  auto& known = shared_[requests];
  Shared shared = known.lock();
  if (shared == nullptr) {
    shared = std::make_shared<const Amounts>(std::move(requests));
    known = shared;
  }
  return shared;
}

// What a pod says of nodes is mostly what its like have said.
const Capacity::Open& Capacity::OpenTo(const Json& pod) const {
  constexpr std::size_t kMost = 256;
  const Json& spec = fields::Object(pod, "spec");
  std::string rules;
  for (const char* field : {"nodeSelector", "affinity", "tolerations"}) {
    rules += fields::Member(spec, field).dump() + ";";
  }
  if (const auto known = open_.find(rules); known != open_.end()) return known->second;
  if (open_.size() >= kMost) open_.clear();
  Open& open = open_[rules];
  for (const auto& [name, node] : nodes_) {
    if (std::string why = Refusal(pod, *node.object); !why.empty()) {
      ++open.refusals[why];
    } else {
      open.nodes.push_back(name);
    }
  }
  return open;
}

tl::expected<std::string, std::string> Capacity::Place(const Json& pod) const {
  const Amounts wanted = RequestsOf(pod);
  const Open& open = OpenTo(pod);
  std::map<std::string, int> refusals = open.refusals;
  const std::string* best = nullptr;
  double best_cpu = 0;
  for (const std::string& name : open.nodes) {
    const Node& node = nodes_.at(name);
    const auto at = used_.find(name);
    static const Amounts kNothing;
    const Amounts& used = at == used_.end() ? kNothing : at->second;
    bool fits = true;
    for (const auto& [resource, n] : wanted) {
      if (n <= 0 || FreeOf(node.allocatable, used, resource) >= n - kRounding) continue;
      ++refusals["Insufficient " + resource];
      fits = false;
    }
    if (!fits) continue;
    const double cpu = FreeOf(node.allocatable, used, "cpu");
    if (best == nullptr || cpu > best_cpu) {
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
    capacity.Hold(pod, *node);
    result.tried = ++result.fit;
  }
  return result;
}

}  // namespace ringmaster::scheduler
