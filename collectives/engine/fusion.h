// Puts requests that are ready into responses, in the order in which all ranks run them: what can
// be reduced in one buffer together, a group as one response, urgent ones first.
//
// Thread rule: pure, but for the ranks it looks up.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/view_ranks.h"

namespace ringmaster::engine {

// `most_bytes`: of a buffer with more than one request. `armed`: what a step's end carries.
std::vector<Response> Fuse(std::vector<Request> ready, size_t most_bytes, bool armed,
                           ViewRanks* ranks);

}  // namespace ringmaster::engine
