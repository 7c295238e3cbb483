// The settings that a member is made with. Plain values.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/membership/clause.h"
#include "common/membership/sizes.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

struct Timers {
  // How long a member waits for each member that campaigns before it, plus jitter.
  Duration campaign = std::chrono::milliseconds(150);
  // The first pause before an unanswered message is repeated. It doubles up to 8 times this.
  Duration retry = std::chrono::milliseconds(100);
  Duration join_retry = std::chrono::milliseconds(200);
  Duration record_retry = std::chrono::milliseconds(500);
  // How long a pod that was left out for a link that keeps breaking waits before it asks to come
  // back. The wait doubles each time, up to 32 times this.
  Duration link_rest = std::chrono::seconds(10);
  // How long the first applicant waits for others that are still expected.
  Duration join_batch = std::chrono::milliseconds(100);
  // The word of one pod that it does not hear several others counts only after this time
  // (hearsay.h). By then the other pods that watch them have missed them, too.
  Duration hearsay = std::chrono::milliseconds(500);
};

struct Config {
  Pod self;  // its incarnation is taken from PersistentState
  Sizes sizes;
  std::uint64_t seed = 1;  // of the campaign timer's jitter
  Timers timers;
  ClauseSet without;  // for tests: clauses taken out
};

}  // namespace ringmaster::membership
