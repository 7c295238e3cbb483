#include "operator/scheduler/capacity.h"

#include <optional>
#include <set>
#include <utility>

#include "common/fields/fields.h"
#include "operator/scheduler/node_rules.h"

namespace ringmaster::scheduler {
namespace {

bool HasEnded(const Json& pod) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

std::string PathOf(const Json& object) {
  return fields::TextAt(object, "/metadata/namespace") + "/" +
         fields::TextAt(object, "/metadata/name");
}

void Capacity::SetNode(const Json& node) {
  const NodeResources::Change change = nodes_.Set(node);
  if (change == NodeResources::Change::kNone) return;
  ++growth_;
  const std::string name = fields::TextAt(node, "/metadata/name");
  if (change == NodeResources::Change::kRules) {
    MoveHeldOn(name, [&](const Held& held) { return !Refusal(held.shape->pod, node).empty(); });
  }
  MoveHeldOn(name, [&](const Held&) { return nodes_.IsOverfull(name); });
}

void Capacity::RemoveNode(const std::string& name) {
  if (nodes_.Remove(name)) MoveHeldOn(name, [](const Held&) { return true; });
}

// Moves held places to other nodes. If no node has room, a pod that exists and may start is left to
// the scheduler.
void Capacity::MoveHeldOn(const std::string& node, const std::function<bool(const Held&)>& which) {
  std::vector<std::string> paths;
  for (const auto& [path, held] : held_) {
    if (held.node == node) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    Held held = held_.at(path);
    if (!which(held)) continue;
    Release(path);
    if (auto other = nodes_.Place(*held.shape)) {
      held.node = std::move(*other);
      nodes_.Use(held.node, held.shape->requests);
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

void Capacity::SetPod(const Json& pod, const std::string& job, std::optional<Moment> leaves_by) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName");
  if (HasEnded(pod)) return RemovePod(uid);
  if (!node.empty() && leaves_by) {
    // A job that takes pods counts on those that leave, and on the time when they have gone.
    if (leaving_.insert_or_assign(uid, *leaves_by).second) ++growth_;
  } else {
    leaving_.erase(uid);
  }
  if (!node.empty()) return SetPlaced(pod, job);
  const bool going = !fields::TextAt(pod, "/metadata/deletionTimestamp").empty();
  return going ? RemovePod(uid) : SetWaiting(pod, job);
}

void Capacity::SetPlaced(const Json& pod, const std::string& job) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"),
                    node = fields::TextAt(pod, "/spec/nodeName"), path = PathOf(pod);
  Amounts requests = RequestsOf(pod);
  const PlacedPods::Pod* const known = placed_.Find(uid);
  if (known != nullptr && *known->node == node && *known->requests == requests) return;
  if (const auto held = held_.find(path); held != held_.end()) {
    if (held->second.uid.empty() || held->second.uid == uid) Release(path);
  }
  RemoveWaiting(uid);
  RemovePlaced(uid);
  nodes_.Use(node, *placed_.Set(uid, node, job, std::move(requests)).requests);
  // The scheduler may have chosen another node than the one where the place was held.
  if (nodes_.IsOverfull(node)) {
    MoveHeldOn(node, [&](const Held&) { return nodes_.IsOverfull(node); });
  }
}

void Capacity::SetWaiting(const Json& pod, const std::string& job) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid"), path = PathOf(pod);
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  if (const auto at = held_.find(path); at != held_.end()) {
    floating_.erase(uid);
    Held& held = at->second;
    held.uid = uid;
    held.gated = gated;
    waiting_[uid] = path;
    if (gated) return;
    // The API server has added defaults, or the last scheduling gate was removed.
    const ShapePtr shape = ShapeOf(pod);
    if (held.shape == shape) return;
    Free(held.node, held.shape->requests);
    held.shape = shape;
    nodes_.Use(held.node, shape->requests);
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
  leaving_.erase(uid);
  RemoveWaiting(uid);
  RemovePlaced(uid);
}

void Capacity::RemoveWaiting(const std::string& uid) {
  floating_.erase(uid);
  const auto waits = waiting_.find(uid);
  if (waits == waiting_.end()) return;
  const auto held = held_.find(waits->second);
  if (held != held_.end() && held->second.uid == uid) Release(std::string(waits->second));
  waiting_.erase(uid);
}

void Capacity::RemovePlaced(const std::string& uid) {
  const PlacedPods::Pod* const pod = placed_.Find(uid);
  if (pod == nullptr) return;
  Free(*pod->node, *pod->requests);
  placed_.Remove(uid);
}

void Capacity::Free(const std::string& node, const Amounts& requests) {
  if (nodes_.Free(node, requests)) ++growth_;
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
  const std::string uid = fields::TextAt(pod, "/metadata/uid"), path = PathOf(pod);
  Release(path);
  floating_.erase(uid);
  const bool gated = !fields::ListAt(pod, "/spec/schedulingGates").empty();
  held_[path] = {uid, gated, node, job, shape};
  if (!uid.empty()) waiting_[uid] = path;
  nodes_.Use(node, shape->requests);
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
  std::set<ShapePtr> refused;  // shapes that fit nowhere: one try per shape is enough
  for (auto at = floating_.begin(); at != floating_.end();) {
    const auto& [path, job, shape] = at->second;
    std::optional<std::string> node;
    if (refused.count(shape) == 0) {
      if (auto found = nodes_.Place(*shape)) node = std::move(*found);
    }
    if (!node) {
      refused.insert(shape);
      ++at;
      continue;
    }
    held_[path] = {at->first, false, *node, job, shape};
    waiting_[at->first] = path;
    nodes_.Use(*node, shape->requests);
    at = floating_.erase(at);
  }
  floating_tried_ = growth_;
}

void Capacity::ForEachOfJobs(const Taker& taker) const {
  for (const auto& [uid, pod] : placed_.all()) {
    if (pod.job != nullptr) taker(*pod.job, *pod.node, *pod.requests);
  }
  for (const auto& [path, held] : held_) {
    if (!held.job.empty()) taker(held.job, held.node, held.shape->requests);
  }
}

}  // namespace ringmaster::scheduler
