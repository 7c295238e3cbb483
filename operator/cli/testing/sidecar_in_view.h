// What a sidecar answers, for tests of what a run makes of it.
#pragma once

#include <cstdint>
#include <string>

#include "operator/inspection/sidecar_status.h"

namespace ringmaster::cli {

// Of pod p0, at step 40, in a view of one rank in each of the pods p0 to p(ranks - 1).
inline inspection::SidecarStatus View(std::uint64_t epoch, const char* reason, int ranks) {
  inspection::SidecarStatus status;
  status.pod = "p0";
  status.epoch = epoch;
  status.view_reason = reason;
  status.step = 40;
  for (int i = 0; i < ranks; ++i) {
    status.pods.push_back("p" + std::to_string(i));
    status.ranks.push_back({status.pods.back(), 0, 1});
  }
  return status;
}

}  // namespace ringmaster::cli
