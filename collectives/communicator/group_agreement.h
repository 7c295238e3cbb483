// How the ranks of a view learn which groups of them share memory (group_map.h): rank 0 hears from
// each rank which arenas it has mapped, and tells all ranks the groups. So a rank that knows the
// groups also knows that every rank is connected with all others.
//
// Thread rule: all ranks of the view call it, each on the thread that builds the view.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/communicator/arguments.h"
#include "collectives/transport/liveness_monitor.h"

namespace ringmaster::communicator {

// `mapped[k]`: this rank has mapped the arena of rank k. *groups: the group of each rank, by rank.
// On failure the view is over.
Status AgreeOnGroups(transport::LivenessMonitor* liveness, RankAndSize place, uint64_t epoch,
                     transport::Clock::time_point deadline, const std::vector<uint8_t>& mapped,
                     std::vector<uint32_t>* groups);

}  // namespace ringmaster::communicator
