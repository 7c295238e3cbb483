// Tracks which pods have a place on the nodes: pods that run, pods that wait for the scheduler, and
// pods for which a place is held before they are created or may start. The informers' nodes and
// pods keep it up to date, and it answers where another pod would fit. Rules that only rank nodes,
// and rules between pods (spreading, pod affinity), are left to the Kubernetes scheduler: a pod
// that fits here may still stay Pending.
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
  // Places held on a node that has changed and has no room for them any more move to another node.
  // Where no node has room, a place that was held for a pod that has yet to be created or to start
  // is lost: see TakeLost.
  void SetNode(const Json& node);
  void RemoveNode(const std::string& name);
  // A pod that has ended takes nothing. A pod without a node and without scheduling gates gets a
  // place by PlaceFloating, unless one is held for it. `job` is the job that the pod belongs to;
  // empty for a pod of no job. `leaves_by`: the pod is being terminated, and should have gone by
  // then.
  void SetPod(const Json& pod, const std::string& job = "",
              std::optional<Moment> leaves_by = std::nullopt);
  void RemovePod(const std::string& uid);

  ShapePtr ShapeOf(const Json& pod) { return nodes_.ShapeOf(pod); }
  ShapePtr ShapeOn(const Shape& shape, const std::string& label, const std::string& value) {
    return nodes_.ShapeOn(shape, label, value);
  }
  // See NodeResources::Place.
  tl::expected<std::string, std::string> Place(const Shape& shape) const {
    return nodes_.Place(shape);
  }
  tl::expected<std::string, std::string> Place(const Json& pod) { return Place(*ShapeOf(pod)); }
  // Holds a place for a pod, under the pod's path, as if it ran there, until it runs, ends, is
  // deleted or Release is called.
  void Hold(const Json& pod, const ShapePtr& shape, const std::string& node,
            const std::string& job);
  void Hold(const Json& pod, const std::string& node) { Hold(pod, ShapeOf(pod), node, ""); }
  void Release(const std::string& path);
  // Releases a place that was held only to see whether the pod fits: this does not count as growth.
  void Undo(const std::string& path);
  bool Holds(const std::string& path) const { return held_.count(path) != 0; }
  // A place is held for this pod, and the pod exists and has no scheduling gate.
  bool HoldsForMade(const std::string& path) const;
  // Holds a place for every pod that waits for the scheduler, so that no job counts on it. Pods
  // that fit nowhere take nothing, and are tried again when something has grown.
  void PlaceFloating();

  // Pods with a node that are being terminated: uid to the time by which they should have gone.
  const std::map<std::string, Moment>& leaving() const { return leaving_; }
  // Null if no pod with this uid has a node.
  const PlacedPods::Pod* PlacementOf(const std::string& uid) const { return placed_.Find(uid); }
  // Frees the resources of a pod as if it had gone, and takes them again. Used by WhatIf, so
  // neither counts as growth.
  void TakeOut(const std::string& uid);
  void PutBack(const std::string& uid);

  // Something may fit now that did not fit when TakeGrown was last called.
  bool HasGrown() const { return growth_ != growth_seen_; }
  bool TakeGrown() { return std::exchange(growth_seen_, growth_) != growth_; }
  // A held place was lost with its node, and its pod doesn't exist yet or may not start yet.
  bool HasLost() const { return lost_; }
  bool TakeLost() { return std::exchange(lost_, false); }

  const NodeResources& nodes() const { return nodes_; }
  // Visits everything that takes resources for a job: its pods, and the places held for them.
  using Taker =
      std::function<void(const std::string& job, const std::string& node, const Amounts& requests)>;
  void ForEachOfJobs(const Taker& taker) const;
  std::size_t places_held() const { return held_.size(); }

 private:
  struct Held {
    std::string uid;  // empty: the pod has yet to be created
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
  std::map<std::string, Moment> leaving_;       // uids of placed_
  std::map<std::string, Held> held_;            // by path
  std::map<std::string, std::string> waiting_;  // uid to path, of pods in held_ that exist
  std::map<std::string, Floating> floating_;    // waiting pods without a held place, by uid
  std::uint64_t growth_ = 1;                    // counts how often something has become free
  std::uint64_t growth_seen_ = 0;
  // growth_ when all floating pods were last tried; 0: some have not been tried.
  std::uint64_t floating_tried_ = 0;
  bool lost_ = false;
};

}  // namespace ringmaster::scheduler
