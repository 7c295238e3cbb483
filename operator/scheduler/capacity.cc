#include "operator/scheduler/capacity.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "operator/api/object_key.h"
#include "operator/scheduler/node_rules.h"

namespace ringmaster::scheduler {
namespace {

bool HasEnded(const Json& pod) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

// In the words of Kubernetes: the pod stands Pending, and no node will do.
bool IsRefused(const Json& pod) {
  const Json& conditions = fields::ListAt(pod, "/status/conditions");
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
    return fields::Text(condition, "type") == "PodScheduled" &&
           fields::Text(condition, "status") == "False" &&
           fields::Text(condition, "reason") == "Unschedulable";
  });
}

// The scheduler has this long to find the place that is held for a pod, after it has refused it for
// the first time, and if it says nothing.
constexpr std::chrono::seconds kRefusedFor{60};
constexpr std::chrono::seconds kUnseenFor{300};

// A pod that exists and may start.
bool WaitsForScheduler(const HeldPlaces::Place& held) { return !held.uid.empty() && !held.gated; }

}  // namespace

void Capacity::SetNode(const Json& node) {
  const NodeResources::Change change = nodes_.Set(node);
  if (change == NodeResources::Change::kNone) return;
  ++growth_;
  floating_.TryAgain();
  const std::string name = fields::TextAt(node, "/metadata/name");
  if (change == NodeResources::Change::kRules) {
    MoveHeldOn(name, [&](const HeldPlaces::Place& held) {
      return !Refusal(held.shape->pod, node).empty();
    });
  }
  MoveHeldOn(name, [&](const HeldPlaces::Place&) { return nodes_.IsOverfull(name); });
}

void Capacity::RemoveNode(const std::string& name) {
  if (!nodes_.Remove(name)) return;
  floating_.TryAgain();
  MoveHeldOn(name, [](const HeldPlaces::Place&) { return true; });
}

// Moves held places to other nodes. If no node has room, a pod that exists and may start is left to
// the scheduler.
void Capacity::MoveHeldOn(const std::string& node,
                          const std::function<bool(const HeldPlaces::Place&)>& which) {
  for (const std::string& path : held_.PathsOn(node)) {
    HeldPlaces::Place held = *held_.Find(path);
    if (!which(held)) continue;
    Release(path);
    if (auto other = nodes_.Place(*held.shape)) {
      held.node = std::move(*other);
      nodes_.Use(held.node, held.shape->requests);
      held_.Set(path, std::move(held));
    } else if (held.uid.empty() || held.gated) {
      ++losses_;
    } else {
      floating_.Set(held.uid, {path, held.job, held.shape, held.refused});
    }
  }
}

void Capacity::SetPod(const Json& pod, const std::string& job, std::optional<Moment> leaves_by) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName");
  if (HasEnded(pod)) return RemovePod(uid);
  if (!node.empty()) {
    SetPlaced(pod, job);
    // A job that takes pods counts on those that leave, and on the time when they have gone.
    if (placed_.SetLeaving(uid, leaves_by)) ++growth_;
    return;
  }
  // One without a node that is only asked to leave may still get a node until it is deleted.
  const bool going = !fields::TextAt(pod, "/metadata/deletionTimestamp").empty();
  return going ? RemovePod(uid) : SetWaiting(pod, job);
}

void Capacity::SetPlaced(const Json& pod, const std::string& job) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName"), path = api::KeyOf(pod);
  Amounts requests = RequestsOf(pod);
  const PlacedPods::Pod* const known = placed_.Find(uid);
  if (known != nullptr && *known->node == node && *known->requests == requests) return;
  const HeldPlaces::Place* const held = held_.Find(path);
  if (held != nullptr && (held->uid.empty() || held->uid == uid)) Release(path);
  RemovePod(uid);
  nodes_.Use(node, *placed_.Set(uid, node, job, std::move(requests)).requests);
  // The scheduler may have chosen another node than the one where the place was held.
  if (nodes_.IsOverfull(node)) {
    MoveHeldOn(node, [&](const HeldPlaces::Place&) { return nodes_.IsOverfull(node); });
  }
}

void Capacity::SetWaiting(const Json& pod, const std::string& job) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"), path = api::KeyOf(pod);
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  if (const HeldPlaces::Place* const known = held_.Find(path)) {
    floating_.Remove(uid);
    HeldPlaces::Place held = *known;
    held.uid = uid;
    held.gated = gated;
    held.refused = IsRefused(pod);
    if (held.refused != known->refused) held.waits_since.reset();
    // The API server has added defaults, or the last scheduling gate was removed.
    if (const ShapePtr shape = gated ? held.shape : shapes().Of(pod); held.shape != shape) {
      if (nodes_.Free(held.node, held.shape->requests)) ++growth_;
      held.shape = shape;
      nodes_.Use(held.node, shape->requests);
    }
    held_.Set(path, std::move(held));
  } else if (gated) {
    floating_.Remove(uid);
  } else {
    floating_.Set(uid, {path, job, shapes().Of(pod), IsRefused(pod)});
  }
}

void Capacity::RemovePod(const std::string& uid) {
  floating_.Remove(uid);
  if (const auto path = held_.PathOfPod(uid)) Release(*path);
  if (const PlacedPods::Pod* const pod = placed_.Find(uid)) {
    if (nodes_.Free(*pod->node, *pod->requests)) ++growth_;
    placed_.Remove(uid);
  }
}

void Capacity::TakeOut(const std::string& uid) {
  const PlacedPods::Pod& pod = *placed_.Find(uid);
  nodes_.Free(*pod.node, *pod.requests);
}

void Capacity::PutBack(const std::string& uid) {
  const PlacedPods::Pod& pod = *placed_.Find(uid);
  nodes_.Use(*pod.node, *pod.requests);
}

void Capacity::Hold(const Json& pod, const ShapePtr& shape, const std::string& node,
                    const std::string& job) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"), path = api::KeyOf(pod);
  Release(path);
  floating_.Remove(uid);
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  held_.Set(path, {uid, gated, node, job, shape});
  nodes_.Use(node, shape->requests);
}

void Capacity::Release(const std::string& path) {
  const HeldPlaces::Place* const held = held_.Find(path);
  if (held == nullptr) return;
  if (nodes_.Free(held->node, held->shape->requests)) ++growth_;
  held_.Remove(path);
}

void Capacity::Undo(const std::string& path) {
  const std::uint64_t before = growth_;
  Release(path);
  growth_ = before;
}

Capacity::Tried Capacity::Try(const Json& pod, const ShapePtr& shape, const std::string& node,
                              const std::string& job) {
  Tried tried{.path = api::KeyOf(pod), .uid = fields::TextAt(pod, "/metadata/uid")};
  if (const HeldPlaces::Place* const held = held_.Find(tried.path)) tried.held = *held;
  if (const FloatingPods::Pod* const floating = floating_.Find(tried.uid))
    tried.floating = *floating;
  const std::uint64_t before = growth_;
  Hold(pod, shape, node, job);
  growth_ = before;
  return tried;
}

void Capacity::Undo(const Tried& tried) {
  Undo(tried.path);
  if (tried.held) {
    nodes_.Use(tried.held->node, tried.held->shape->requests);
    held_.Set(tried.path, *tried.held);
  }
  if (tried.floating) floating_.Set(tried.uid, *tried.floating);
}

void Capacity::PlaceFloating() {
  const auto take = [this](const std::string& uid, const FloatingPods::Pod& pod,
                           const std::string& node) {
    held_.Set(pod.path, {uid, false, node, pod.job, pod.shape, pod.refused});
    nodes_.Use(node, pod.shape->requests);
  };
  floating_.PlaceAll(nodes_, growth_, take);
}

std::optional<Moment> Capacity::GiveUpInVain(Moment now) {
  std::optional<Moment> next;
  std::vector<std::pair<std::string, HeldPlaces::Place>> in_vain, seen;
  for (const auto& [path, held] : held_.all()) {
    if (!WaitsForScheduler(held)) continue;
    const auto patience = held.refused ? kRefusedFor : kUnseenFor;
    const Moment end = held.waits_since.value_or(now) + patience;
    if (end <= now) {
      in_vain.emplace_back(path, held);
      continue;
    }
    if (!held.waits_since) seen.emplace_back(path, held);
    next = std::min(next.value_or(end), end);
  }
  for (auto& [path, held] : seen) {
    held.waits_since = now;
    held_.Set(path, std::move(held));
  }
  for (const auto& [path, held] : in_vain) {
    Release(path);
    floating_.Set(held.uid, {path, held.job, held.shape, held.refused, true});
  }
  return next;
}

bool Capacity::HoldsForRefused() const {
  return std::any_of(held_.all().begin(), held_.all().end(),
                     [](const auto& place) { return place.second.refused; });
}

void ForEachOfJobs(const Capacity& capacity, const Taker& taker) {
  for (const auto& [uid, pod] : capacity.placed().all()) {
    if (pod.job != nullptr) taker(*pod.job, *pod.node, *pod.requests);
  }
  for (const auto& [path, held] : capacity.held().all()) {
    if (!held.job.empty()) taker(held.job, held.node, held.shape->requests);
  }
}

}  // namespace ringmaster::scheduler
