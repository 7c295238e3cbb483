// What a sidecar asks of a worker's timeline, in a frame (docs/contracts.md, section 2).
//
// Pure. The amounts that are asked for are limited here.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "collectives/timeline/timeline.h"

namespace ringmaster::elastic {

struct TimelineRequest {
  uint64_t number = 0;  // its answer carries it
  timeline::RecentRequest recent;
};

// Throws nlohmann's exception where a field is of another type.
TimelineRequest ReadTimelineRequest(const nlohmann::json& frame);

}  // namespace ringmaster::elastic
