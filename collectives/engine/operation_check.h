// Checks whether what the ranks have asked for under one name can run. All ranks come to the same
// answer, word for word, because they have the same announcements.
//
// Thread rule: pure, except that ViewRanks keeps what it has looked up.
#pragma once

#include <map>
#include <string>

#include "collectives/engine/joined_ranks.h"
#include "collectives/engine/request.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/view_ranks.h"
#include "ringmaster/status.h"

namespace ringmaster::engine {

// Why the operation can't run; RM_OK: it can. `by_rank`: the requests of all ranks that must
// announce it, except those that have joined. RM_ERR_INVALID, RM_ERR_MISMATCH and RM_ERR_ROOT_LOST
// mean what they mean for callers (types.h).
Status CheckOperation(const std::map<int, Request>& by_rank, const SetTable& sets,
                      ViewRanks* ranks);

// A sentence that says that these two operations, which have the same name in different sets, wait
// for each other for ever; empty if they don't. A rank can have a name in flight only once. So if
// rank A waits for rank B in one set, and B waits for A in another set under the same name, neither
// can ever ask for the operation that the other waits for.
std::string DescribeRivals(const std::map<int, Request>& one, const std::map<int, Request>& other,
                           const JoinedRanks& joined, ViewRanks* ranks);

}  // namespace ringmaster::engine
