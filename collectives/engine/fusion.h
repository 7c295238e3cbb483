// Puts requests that are ready into responses, in the order in which all ranks run them: what can
// be reduced in one buffer together, a group as one response, urgent ones first.
//
// Thread rule: pure, but for what it asks about requests.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/view_ranks.h"

namespace ringmaster::engine {

// The same on all ranks of a view, or they would not run the same batches.
struct FusionRules {
  size_t most_bytes = 0;  // of a buffer with more than one request
  // It is not packed with others (Backend::RunsAlone). Empty: none is.
  std::function<bool(const Request&)> runs_alone = {};
};

// What is less urgent rides along with what is more urgent up to so many bytes of a buffer: so far
// an operation's time is mostly the way to the peers and back, which they share.
constexpr size_t kUrgentBytes = size_t{256} << 10;

// `armed`: what a step's end carries.
std::vector<Response> Fuse(std::vector<Request> ready, const FusionRules& rules, bool armed,
                           ViewRanks* ranks);

}  // namespace ringmaster::engine
