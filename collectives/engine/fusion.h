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
  // Whether a request is not packed with others (Backend::RunsAlone). Empty: every request may be
  // packed.
  std::function<bool(const Request&)> runs_alone = {};
};

// Less urgent requests share a buffer with more urgent ones up to this size. Below it an
// operation's time is mostly the way to the peers and back, which the requests then share.
constexpr size_t kUrgentBytes = size_t{256} << 10;

// `armed`: what a step's end carries.
std::vector<Response> Fuse(std::vector<Request> ready, const FusionRules& rules, bool armed,
                           ViewRanks* ranks);

}  // namespace ringmaster::engine
