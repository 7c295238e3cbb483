// Tracks which pods have a place on the nodes: pods that run, pods that wait for the scheduler, and
// pods for which a place is held before they are created or may start. The informers' nodes and
// pods keep it up to date, and it answers where another pod would fit. Rules that only rank nodes,
// and rules between pods (spreading, pod affinity), are left to the Kubernetes scheduler: a pod
// that fits here may still stay Pending.
//
// Pure: objects in, answers out. A plain value; copy it to try something.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "operator/scheduler/floating_pods.h"
#include "operator/scheduler/held_places.h"
#include "operator/scheduler/moment.h"
#include "operator/scheduler/node_resources.h"
#include "operator/scheduler/placed_pods.h"

namespace ringmaster::scheduler {

class Capacity {
 public:
  // Places held on a node that has changed and has no room for them any more move to another node.
  // Where no node has room, a place that was held for a pod that has yet to be created or to start
  // is lost: see losses().
  void SetNode(const Json& node);
  void RemoveNode(const std::string& name);
  // A pod that has ended takes nothing. A pod without a node and without scheduling gates gets a
  // place by PlaceFloating, unless one is held for it. `job` is the job that the pod belongs to;
  // empty for a pod of no job. `leaves_by`: the pod is being terminated, and should have gone by
  // then.
  void SetPod(const Json& pod, const std::string& job = "",
              std::optional<Moment> leaves_by = std::nullopt);
  void RemovePod(const std::string& uid);

  // Holds a place for a pod, under the pod's path, as if it ran there, until it runs, ends, is
  // deleted or Release is called.
  void Hold(const Json& pod, const ShapePtr& shape, const std::string& node,
            const std::string& job);
  void Release(const std::string& path);
  // Releases a place that was held only to see whether the pod fits: this does not count as growth.
  void Undo(const std::string& path);
  // A place that is held to see what fits then, and what it has taken the place of: the pod may
  // have had another place, or have waited for one.
  struct Tried {
    std::string path, uid;
    std::optional<HeldPlaces::Place> held;
    std::optional<FloatingPods::Pod> floating;
  };
  Tried Try(const Json& pod, const ShapePtr& shape, const std::string& node,
            const std::string& job);
  void Undo(const Tried& tried);
  // Holds a place for every pod that waits for the scheduler, so that no job counts on it. Pods
  // that fit nowhere take nothing, and are tried again when something has grown.
  void PlaceFloating();
  // A pod that the scheduler goes on refusing although a place is held for it lacks what is not
  // counted here: a volume perhaps, or a rule between pods. One that no scheduler looks at has
  // named one that is not there. Its place is free after a while, until the pod or a node has
  // changed. Returns when the next one has had its time; nullopt: none waits.
  std::optional<Moment> GiveUpInVain(Moment now);
  // A place is held for a pod that the scheduler refuses.
  bool HoldsForRefused() const;
  // Frees the resources of a pod as if it had gone, and takes them again. Used by WhatIf, so
  // neither counts as growth.
  void TakeOut(const std::string& uid);
  void PutBack(const std::string& uid);

  // A pod's shape is needed to ask nodes() where the pod fits.
  Shapes& shapes() { return nodes_.shapes(); }
  const NodeResources& nodes() const { return nodes_; }
  const PlacedPods& placed() const { return placed_; }
  const HeldPlaces& held() const { return held_; }
  // Rises when something may fit that did not fit before. It is never 0.
  std::uint64_t growth() const { return growth_; }
  // Counts the held places that were lost with their nodes and whose pods didn't exist yet or might
  // not start yet.
  std::uint64_t losses() const { return losses_; }

 private:
  void SetPlaced(const Json& pod, const std::string& job);
  void SetWaiting(const Json& pod, const std::string& job);
  void MoveHeldOn(const std::string& node,
                  const std::function<bool(const HeldPlaces::Place&)>& which);

  NodeResources nodes_;
  PlacedPods placed_;
  HeldPlaces held_;
  FloatingPods floating_;
  std::uint64_t growth_ = 1;  // counts how often something has become free
  std::uint64_t losses_ = 0;
};

// Visits everything that takes resources for a job: its pods, and the places held for them.
using Taker =
    std::function<void(const std::string& job, const std::string& node, const Amounts& requests)>;
void ForEachOfJobs(const Capacity& capacity, const Taker& taker);

}  // namespace ringmaster::scheduler
