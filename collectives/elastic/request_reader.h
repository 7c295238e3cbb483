// Reads what a caller of the C ABI asks for: checks every field that can be checked without the
// other ranks, and says which of them is wrong.
//
// Thread rule: pure.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/elastic/prepared_group.h"
#include "collectives/engine/operation.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

using MembersOf = std::function<std::vector<std::string>(int process_set)>;

// Who asks, and whom it may name.
struct Asker {
  std::string worker;  // this one's name
  // The workers of a process set, by rank: those of the step's beginning, and those of them that
  // are in the view now.
  MembersOf members, members_now;
};

// `n` requests in the layout that the caller was compiled with: that of this version or of a later
// one, which has more fields at the end. More than one request are a group.
//
// If something is wrong that only this rank can know (an alltoall's splits), the request must fail
// on all ranks alike: it becomes the request's `problem`.
Status ReadRequests(const rm_request* requests, size_t n, const Asker& asker,
                    std::vector<std::shared_ptr<engine::Operation>>* operations);

// A group of the name `name` that is made of `n` allreduces, given as for ReadRequests(). Their own
// names are not read.
Status ReadPrepared(const char* name, const rm_request* requests, size_t n, PreparedGroup* group);

}  // namespace ringmaster::elastic
