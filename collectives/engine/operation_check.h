// Whether what the ranks ask for under one name can run: pure, so all ranks come to the same words
// from the same announcements.
//
// Thread rule: pure, but for the ranks that are looked up.
#pragma once

#include <map>
#include <string>

#include "collectives/engine/joined_ranks.h"
#include "collectives/engine/request.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/view_ranks.h"
#include "ringmaster/status.h"

namespace ringmaster::engine {

// Why the operation can't run; RM_OK: it can. `by_rank`: of all that must have announced it.
Status CheckOperation(const std::map<int, Request>& by_rank, const SetTable& sets,
                      ViewRanks* ranks);

// Empty, or a sentence that says that these two operations, which have one name and are of
// different sets, wait for each other for ever. A rank can have a name in flight only once. So if
// rank A waits for rank B in one set, and B waits for A in another set under the same name, neither
// can ever ask for the operation that the other waits for.
std::string DescribeRivals(const std::map<int, Request>& one, const std::map<int, Request>& other,
                           const JoinedRanks& joined, ViewRanks* ranks);

}  // namespace ringmaster::engine
