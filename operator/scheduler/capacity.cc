#include "operator/scheduler/capacity.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
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

// Of amounts that were summed up and taken off again nothing is left, whatever the order was.
void TakeOff(Amounts& from, const Amounts& amounts) {
  Add(from, amounts, -1);
  std::erase_if(from, [](const auto& amount) { return std::abs(amount.second) < kRounding; });
}

Json RulesOf(const Json& pod) {
  const Json& spec = fields::Object(pod, "spec");
  Json rules = Json::object();
  for (const char* field : {"nodeSelector", "affinity", "tolerations"}) {
    const Json& rule = fields::Member(spec, field);
    if (!rule.is_null()) rules[field] = rule;
  }
  return rules;
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

int CountFits(const Amounts& allocatable, const Amounts& used, const Amounts& requests) {
  double fits = 0;
  bool bounded = false;
  for (const auto& [resource, n] : requests) {
    if (n <= 0) continue;
    const double some = std::floor((FreeOf(allocatable, used, resource) + kRounding) / n);
    fits = bounded ? std::min(fits, some) : some;
    bounded = true;
  }
  constexpr double kMany = 1e6;
  return static_cast<int>(std::clamp(bounded ? fits : kMany, 0.0, kMany));
}

void Capacity::SetNode(const Json& node) {
  const std::string name = fields::TextAt(node, "/metadata/name");
  Node& known = nodes_[name];
  Amounts allocatable = AmountsIn(fields::ObjectAt(node, "/status/allocatable"));
  const bool same_rules =
      known.object != nullptr && fields::At(*known.object, "/spec") == fields::At(node, "/spec") &&
      fields::At(*known.object, "/metadata/labels") == fields::At(node, "/metadata/labels");
  if (same_rules && known.allocatable == allocatable) return;  // a heartbeat
  if (!same_rules) open_.clear();
  known.object = std::make_shared<const Json>(node);
  known.allocatable = std::move(allocatable);
  known.free.clear();
  CountFree(name, known.allocatable);
  if (const auto used = used_.find(name); used != used_.end()) CountFree(name, used->second);
  ++growth_;
  if (!same_rules) {
    MoveHeldOn(name, [&](const Held& held) { return !Refusal(held.shape->pod, node).empty(); });
  }
  MoveHeldOn(name, [&](const Held&) { return IsOverfull(name); });
}

void Capacity::RemoveNode(const std::string& name) {
  if (nodes_.erase(name) == 0) return;
  open_.clear();
  MoveHeldOn(name, [](const Held&) { return true; });
}

// Another place does as well. Where there is none, a pod that is there already is the scheduler's
// to place.
void Capacity::MoveHeldOn(const std::string& node, const std::function<bool(const Held&)>& which) {
  std::vector<std::string> paths;
  for (const auto& [path, held] : held_) {
    if (held.node == node) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    Held held = held_.at(path);
    if (!which(held)) continue;
    Release(path);
    if (auto other = Place(*held.shape)) {
      held.node = std::move(*other);
      Use(held.node, held.shape->requests);
      if (!held.uid.empty()) waiting_[held.uid] = path;
      held_[path] = std::move(held);
    } else if (held.uid.empty() || held.gated) {
      lost_ = true;
    } else {
      floating_[held.uid] = {path, held.job, held.shape};
      floating_tried_ = 0;
    }
  }
}

bool Capacity::IsOverfull(const std::string& node) const {
  const auto used = used_.find(node);
  const auto known = nodes_.find(node);
  if (used == used_.end() || known == nodes_.end()) return false;
  const Amounts& allocatable = known->second.allocatable;
  return std::any_of(used->second.begin(), used->second.end(), [&](const auto& amount) {
    return FreeOf(allocatable, used->second, amount.first) < -kRounding;
  });
}

void Capacity::SetPod(const Json& pod, const std::string& job, std::optional<Moment> leaves_by) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName"), path = PathOf(pod);
  if (HasEnded(pod)) return RemovePod(uid);
  if (!node.empty() && leaves_by) {
    // Whoever takes pods from others counts on what leaves, and on when it has gone.
    if (leaving_.insert_or_assign(uid, *leaves_by).second) ++growth_;
  } else {
    leaving_.erase(uid);
  }
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
    if (leaves_by) leaving_[uid] = *leaves_by;
    Pod& placed = pods_[uid] = {Intern(node), job.empty() ? nullptr : Intern(job),
                                Share(std::move(requests))};
    Use(node, *placed.requests);
    // The scheduler may have chosen another node than we had.
    if (IsOverfull(node)) MoveHeldOn(node, [&](const Held&) { return IsOverfull(node); });
    return;
  }
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  const bool going = !fields::TextAt(pod, "/metadata/deletionTimestamp").empty();
  if (going) return RemovePod(uid);
  if (const auto at = held_.find(path); at != held_.end()) {
    floating_.erase(uid);
    Held& held = at->second;
    held.uid = uid;
    held.gated = gated;
    waiting_[uid] = path;
    if (gated) return;
    // The API server has added defaults, or a gate of somebody else is gone.
    const ShapePtr shape = ShapeOf(pod);
    if (held.shape == shape) return;
    Free(held.node, held.shape->requests);
    held.shape = shape;
    Use(held.node, shape->requests);
  } else if (gated) {
    floating_.erase(uid);
  } else {
    Floating& floating = floating_[uid];
    const ShapePtr shape = ShapeOf(pod);
    if (floating.shape == shape) return;
    floating = {path, job, shape};
    floating_tried_ = 0;
  }
}

void Capacity::RemovePod(const std::string& uid) {
  floating_.erase(uid);
  leaving_.erase(uid);
  if (const auto waits = waiting_.find(uid); waits != waiting_.end()) {
    const auto held = held_.find(waits->second);
    if (held != held_.end() && held->second.uid == uid) Release(std::string(waits->second));
    waiting_.erase(uid);
  }
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return;
  Free(*known->second.node, *known->second.requests);
  pods_.erase(known);
}

std::optional<Capacity::Placement> Capacity::PlacementOf(const std::string& uid) const {
  const auto known = pods_.find(uid);
  if (known == pods_.end()) return std::nullopt;
  return Placement{*known->second.node, *known->second.requests};
}

void Capacity::TakeOut(const std::string& uid) {
  const Pod& pod = pods_.at(uid);
  const std::uint64_t before = growth_;
  Free(*pod.node, *pod.requests);
  growth_ = before;
}

void Capacity::PutBack(const std::string& uid) {
  const Pod& pod = pods_.at(uid);
  Use(*pod.node, *pod.requests);
}

double Capacity::FreeOn(const std::string& node, const std::string& resource) const {
  static const Amounts kNothing;
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return 0;
  const auto used = used_.find(node);
  return FreeOf(known->second.allocatable, used == used_.end() ? kNothing : used->second, resource);
}

void Capacity::Hold(const Json& pod, const ShapePtr& shape, const std::string& node,
                    const std::string& job) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"), path = PathOf(pod);
  Release(path);
  floating_.erase(uid);
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  held_[path] = {uid, gated, node, job, shape};
  if (!uid.empty()) waiting_[uid] = path;
  Use(node, shape->requests);
}

void Capacity::Release(const std::string& path) {
  const auto held = held_.find(path);
  if (held == held_.end()) return;
  Free(held->second.node, held->second.shape->requests);
  waiting_.erase(held->second.uid);
  held_.erase(held);
}

void Capacity::Undo(const std::string& path) {
  const std::uint64_t before = growth_;
  Release(path);
  growth_ = before;
}

bool Capacity::HoldsForMade(const std::string& path) const {
  const auto held = held_.find(path);
  return held != held_.end() && !held->second.uid.empty() && !held->second.gated;
}

void Capacity::PlaceFloating() {
  if (floating_tried_ == growth_) return;
  std::set<ShapePtr> refused;  // pods of one shape find no place, one like the other
  for (auto at = floating_.begin(); at != floating_.end();) {
    const auto& [path, job, shape] = at->second;
    std::optional<std::string> node;
    if (refused.count(shape) == 0) {
      if (auto found = Place(*shape)) node = std::move(*found);
    }
    if (!node) {
      refused.insert(shape);
      ++at;
      continue;
    }
    held_[path] = {at->first, false, *node, job, shape};
    waiting_[at->first] = path;
    Use(*node, shape->requests);
    at = floating_.erase(at);
  }
  floating_tried_ = growth_;
}

void Capacity::ForEachOfJobs(const Taker& taker) const {
  for (const auto& [uid, pod] : pods_) {
    if (pod.job != nullptr) taker(*pod.job, *pod.node, *pod.requests);
  }
  for (const auto& [path, held] : held_) {
    if (!held.job.empty()) taker(held.job, held.node, held.shape->requests);
  }
}

void Capacity::Use(const std::string& node, const Amounts& requests) {
  Add(used_[node], requests);
  CountFree(node, requests);
}

void Capacity::Free(const std::string& node, const Amounts& requests) {
  const auto used = used_.find(node);
  if (used == used_.end()) return;
  TakeOff(used->second, requests);
  if (used->second.empty()) used_.erase(used);
  CountFree(node, requests);
  ++growth_;
}

Capacity::Name Capacity::Intern(const std::string& name) {
  constexpr std::size_t kMost = 1024;
  if (names_.size() > kMost && names_.size() > 2 * pods_.size()) {
    std::erase_if(names_, [](const auto& known) { return known.second.use_count() == 1; });
  }
  Name& known = names_[name];
  if (known == nullptr) known = std::make_shared<const std::string>(name);
  return known;
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

ShapePtr Capacity::ShapeOf(const Json& pod) {
  constexpr std::size_t kMost = 1024;
  if (shapes_.size() > kMost) {
    std::erase_if(shapes_, [](const auto& known) { return known.second.expired(); });
  }
  Json rules = RulesOf(pod);
  const auto [at, is_new] = shapes_.try_emplace({rules.dump(), RequestsOf(pod)});
  ShapePtr shape = at->second.lock();
  if (shape == nullptr) {
    shape = std::make_shared<const Shape>(
        MakeShape(at->first.second, std::move(rules), at->first.first));
    at->second = shape;
  }
  return shape;
}

// What a pod says of nodes is mostly what its like have said.
const Capacity::Open& Capacity::OpenTo(const Shape& shape) const {
  constexpr std::size_t kMost = 256;
  if (const auto known = open_.find(shape.rules); known != open_.end()) return known->second;
  if (open_.size() >= kMost) open_.clear();
  Open& open = open_[shape.rules];
  for (const auto& [name, node] : nodes_) {
    if (std::string why = Refusal(shape.pod, *node.object); !why.empty()) {
      ++open.refusals[why];
    } else {
      open.nodes.push_back(name);
      open.states.push_back(&node);
    }
  }
  return open;
}

Shape Capacity::MakeShape(Amounts requests, Json rules, std::string text) const {
  Shape shape{std::move(requests), {{"spec", std::move(rules)}}, std::move(text), {}};
  for (const auto& [resource, n] : shape.requests) {
    if (n > 0) shape.wanted.emplace_back(NumberOf(resource), n);
  }
  return shape;
}

// There are few, and each look at a node by their names would be dear.
std::size_t Capacity::NumberOf(const std::string& resource) const {
  return resources_.try_emplace(resource, resources_.size()).first->second;
}

void Capacity::CountFree(const std::string& node, const Amounts& resources) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return;
  static const Amounts kNothing;
  const auto at = used_.find(node);
  const Amounts& used = at == used_.end() ? kNothing : at->second;
  std::vector<double>& free = known->second.free;
  for (const auto& [resource, n] : resources) {
    const std::size_t number = NumberOf(resource);
    if (free.size() <= number) free.resize(number + 1);
    free[number] = FreeOf(known->second.allocatable, used, resource);
  }
}

tl::expected<std::string, std::string> Capacity::Place(const Json& pod) const {
  Json rules = RulesOf(pod);
  std::string text = rules.dump();
  return Place(MakeShape(RequestsOf(pod), std::move(rules), std::move(text)));
}

tl::expected<std::string, std::string> Capacity::Place(const Shape& shape) const {
  const Open& open = OpenTo(shape);
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
    const double cpu = free_of(node, 0);
    if (!fits || (best < open.nodes.size() && cpu <= best_cpu)) continue;
    best = i;
    best_cpu = cpu;
  }
  if (best < open.nodes.size()) return open.nodes[best];
  return tl::unexpected(WhyNone(open, shape, insufficient));
}

// `insufficient`: on how many of the open nodes each resource that is wanted is too little.
std::string Capacity::WhyNone(const Open& open, const Shape& shape,
                              const std::vector<int>& insufficient) const {
  std::map<std::string, int> refusals = open.refusals;
  std::size_t r = 0;
  for (const auto& [resource, n] : shape.requests) {
    if (n <= 0) continue;
    if (insufficient[r] > 0) refusals["Insufficient " + resource] = insufficient[r];
    ++r;
  }
  std::string list;
  for (const auto& [why, count] : refusals) {
    list += (list.empty() ? " " : ", ") + std::to_string(count) + " " + why;
  }
  return "0/" + std::to_string(nodes_.size()) +
         " nodes are available:" + (list.empty() ? " no nodes" : list) + ".";
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
