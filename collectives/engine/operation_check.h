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

// Empty, or a sentence: these two, of one name and different sets, wait for each other for ever.
// A name is in flight once on a rank. So if one waits for the other in its set and the other for
// the one in another set, neither can ever ask for what the other has.
std::string DescribeRivals(const std::map<int, Request>& one, const std::map<int, Request>& other,
                           const JoinedRanks& joined, ViewRanks* ranks);

}  // namespace ringmaster::engine
