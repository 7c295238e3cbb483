// Puts requests that are ready into responses, in the order in which all ranks run them: urgent
// ones first. Requests that can be reduced together share a buffer, and a group becomes one
// response.
//
// Thread rule: pure, except for the calls of FusionRules::runs_alone and ViewRanks.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/view_ranks.h"

namespace ringmaster::engine {

// These must be the same on all ranks of a view, or the ranks would not run the same batches.
struct FusionRules {
  size_t most_bytes = 0;  // limit for a buffer with more than one request
  // Whether a request is not packed with others (Backend::RunsAlone). Empty: every request may be
  // packed.
  std::function<bool(const Request&)> runs_alone = {};
};

// Less urgent requests share a buffer with more urgent ones only up to this size. Below it the time
// of an operation is mostly the round trip to the peers, so the urgent request loses little.
constexpr size_t kUrgentBytes = size_t{256} << 10;

// The same requests in the same order give the same responses on all ranks. `armed`: all ranks are
// armed, so a step end among the requests is the boundary of a planned change.
std::vector<Response> Fuse(std::vector<Request> ready, const FusionRules& rules, bool armed,
                           ViewRanks* ranks);

}  // namespace ringmaster::engine
