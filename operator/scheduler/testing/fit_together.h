// Fits a gang alone beside the running pods; admissions are compared with this.
#pragma once

#include <vector>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

// How many of `pods`, in this order, fit beside all pods that run or wait for the scheduler.
inline int FitTogether(Capacity capacity, const std::vector<Json>& pods,
                       std::string* why = nullptr) {
  capacity.PlaceFloating();
  int fit = 0;
  for (const Json& pod : pods) {
    const ShapePtr shape = capacity.shapes().Of(pod);
    const auto node = capacity.nodes().Place(*shape);
    if (!node) {
      if (why != nullptr) *why = node.error();
      break;
    }
    capacity.Hold(pod, shape, *node, "");
    ++fit;
  }
  return fit;
}

}  // namespace ringmaster::scheduler
