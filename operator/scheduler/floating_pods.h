// The pods that wait for the Kubernetes scheduler and for which no place is held. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "operator/scheduler/node_resources.h"

namespace ringmaster::scheduler {

class FloatingPods {
 public:
  struct Pod {
    std::string path;
    std::string job;
    ShapePtr shape;
    bool refused = false;   // the scheduler says that no node will do
    bool given_up = false;  // it got no node with a place held: the pod is not tried
  };
  // A pod that is new or has another shape, or that was refused and is not any more, is tried the
  // next time, even if nothing has grown.
  void Set(const std::string& uid, Pod pod);
  // A node has changed: pods that were given up are tried again.
  void TryAgain();
  void Remove(const std::string& uid) { pods_.erase(uid); }
  // Null if it doesn't float. Stays valid until the pod is set again or removed.
  const Pod* Find(const std::string& uid) const {
    const auto pod = pods_.find(uid);
    return pod == pods_.end() ? nullptr : &pod->second;
  }

  // Takes the place on the node, so that the next pod doesn't get it.
  using TakePlace =
      std::function<void(const std::string& uid, const Pod& pod, const std::string& node)>;
  // Calls `take` for each pod that fits on one of the nodes; that pod floats no more. Does nothing
  // if all pods were tried at this growth already. `growth` counts how often something has become
  // free on the nodes, and is never 0.
  void PlaceAll(const NodeResources& nodes, std::uint64_t growth, const TakePlace& take);

 private:
  std::map<std::string, Pod> pods_;  // by uid
  std::uint64_t tried_at_ = 0;       // the growth when all pods were last tried; 0: some were not
};

}  // namespace ringmaster::scheduler
