// Asks where a pod fits, for tests that have only the pod.
#pragma once

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

// See NodeResources::Place.
inline tl::expected<std::string, std::string> PlaceOf(Capacity* capacity, const Json& pod) {
  return capacity->nodes().Place(*capacity->shapes().Of(pod));
}

}  // namespace ringmaster::scheduler
