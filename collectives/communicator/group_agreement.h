// How the ranks of a view come to know the groups that share memory (group_map.h): rank 0 hears
// from each rank which arenas it has mapped, and tells all the groups. So a rank that knows them
// knows, too, that every rank is connected with all others.
//
// Thread rule: a collective of the view.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/communicator/arguments.h"
#include "collectives/transport/liveness_monitor.h"

namespace ringmaster::communicator {

// `mapped`: by rank, whether this one has mapped its arena, the own one included. *groups: by rank.
// On failure the view is over.
Status AgreeOnGroups(transport::LivenessMonitor* liveness, RankAndSize place, uint64_t epoch,
                     transport::Clock::time_point deadline, const std::vector<uint8_t>& mapped,
                     std::vector<uint32_t>* groups);

}  // namespace ringmaster::communicator
