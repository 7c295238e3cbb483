// Who has a place on the nodes: pods that run, pods that wait for the scheduler, and pods for which
// a place is held before they are made or may start. It is kept from nodes and pods as they come,
// and answers where a pod would fit beside them. What only ranks nodes, and what relates pods to
// each other (spreading, pod affinity), is the scheduler's and is left out: a yes here may still be
// a Pending there.
//
// Pure: objects in, answers out. A plain value; copy it to try something.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "operator/scheduler/moment.h"
#include "operator/scheduler/node_resources.h"
#include "operator/scheduler/placed_pods.h"

namespace ringmaster::scheduler {

// "namespace/name" of an object.
std::string PathOf(const Json& object);

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

  ShapePtr ShapeOf(const Json& pod) { return nodes_.ShapeOf(pod); }
  ShapePtr ShapeOn(const Shape& shape, const std::string& label, const std::string& value) {
    return nodes_.ShapeOn(shape, label, value);
  }
  // As NodeResources::Place.
  tl::expected<std::string, std::string> Place(const Shape& shape) const {
    return nodes_.Place(shape);
  }
  tl::expected<std::string, std::string> Place(const Json& pod) { return Place(*ShapeOf(pod)); }
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
  // Null: there is no pod of this uid that has a node.
  const PlacedPods::Pod* PlacementOf(const std::string& uid) const { return placed_.Find(uid); }
  // What the pod takes is free, as if it had gone, and then taken again. For WhatIf: nothing has
  // grown.
  void TakeOut(const std::string& uid);
  void PutBack(const std::string& uid);

  // Something may fit now that did not fit the last time that this was asked.
  bool HasGrown() const { return growth_ != growth_seen_; }
  bool TakeGrown() { return std::exchange(growth_seen_, growth_) != growth_; }
  // A place that was held for a pod that isn't made, or may not start yet, is gone with its node.
  bool HasLost() const { return lost_; }
  bool TakeLost() { return std::exchange(lost_, false); }

  const NodeResources& nodes() const { return nodes_; }
  // All that takes something for a job: its pods, and the places that are held for them.
  using Taker =
      std::function<void(const std::string& job, const std::string& node, const Amounts& requests)>;
  void ForEachOfJobs(const Taker& taker) const;
  std::size_t places_held() const { return held_.size(); }

 private:
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

  void SetPlaced(const Json& pod, const std::string& job);
  void SetWaiting(const Json& pod, const std::string& job);
  void RemovePlaced(const std::string& uid);
  void RemoveWaiting(const std::string& uid);
  void Free(const std::string& node, const Amounts& requests);
  void MoveHeldOn(const std::string& node, const std::function<bool(const Held&)>& which);

  NodeResources nodes_;
  PlacedPods placed_;
  std::map<std::string, Moment> leaving_;       // of placed_, by uid
  std::map<std::string, Held> held_;            // by path
  std::map<std::string, std::string> waiting_;  // uid to path, of pods that a place is held for
  std::map<std::string, Floating> floating_;    // those without any, by uid
  std::uint64_t growth_ = 1;                    // so often something has become free
  std::uint64_t growth_seen_ = 0;
  std::uint64_t floating_tried_ = 0;  // growth_ when the floating pods were tried last; 0: not all
  bool lost_ = false;
};

}  // namespace ringmaster::scheduler
