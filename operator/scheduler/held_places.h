// The places that are held on nodes for pods that don't run yet: pods that exist and wait, and pods
// that have yet to be created. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/scheduler/moment.h"
#include "operator/scheduler/shape.h"

namespace ringmaster::scheduler {

class HeldPlaces {
 public:
  struct Place {
    std::string uid;  // empty: the pod has yet to be created
    bool gated = false;
    std::string node;
    std::string job;
    ShapePtr shape;
    bool refused = false;  // the scheduler says that no node will do
    // Seen waiting with this place, and refused or not as it is now.
    std::optional<Moment> waits_since = std::nullopt;
  };
  // Replaces the place that was held under this path.
  void Set(const std::string& path, Place place);
  void Remove(const std::string& path);

  // Null if no place is held under this path. Stays valid until the place is set again or removed.
  const Place* Find(const std::string& path) const;
  bool Has(const std::string& path) const { return Find(path) != nullptr; }
  // A place is held for this pod, and the pod exists and has no scheduling gate.
  bool HasForMade(const std::string& path) const;
  // The path under which a place is held for the pod with this uid.
  std::optional<std::string> PathOfPod(const std::string& uid) const;
  std::vector<std::string> PathsOn(const std::string& node) const;
  const std::map<std::string, Place>& all() const { return places_; }  // by path
  std::size_t size() const { return places_.size(); }

 private:
  std::map<std::string, Place> places_;       // by path
  std::map<std::string, std::string> paths_;  // by uid, of the pods that exist
};

}  // namespace ringmaster::scheduler
