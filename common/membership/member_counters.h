// Counters of a member since it was made, for metrics and for the coverage of tests.
#pragma once

#include <cstdint>

namespace ringmaster::membership {

struct MemberCounters {
  std::uint32_t campaigns = 0;            // rounds above 0 begun
  std::uint32_t refused = 0;              // own ballots refused for a higher one
  std::uint32_t decided_by_majority = 0;  // 6a, pods alone
  std::uint32_t decided_by_record = 0;    // 6a, R's vote was needed
  std::uint32_t decided_by_all = 0;       // 6b, resignations were needed
};

}  // namespace ringmaster::membership
