// Reads what a caller of the C ABI asks for: checks every field that can be checked without the
// other ranks, and says which of them is wrong.
//
// Thread rule: pure.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/operation.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

using MembersOf = std::function<std::vector<std::string>(int process_set)>;

// Who asks, and whom it may name.
struct Asker {
  std::string worker;  // this one's name
  MembersOf members;   // the workers of a process set that are in the view, by rank
};

// `n` requests in the layout that the caller was compiled with: an earlier or a later version of
// this one. More than one are a group.
//
// What only this rank can know to be wrong (an alltoall's splits) fails on all ranks alike: it
// becomes the request's `problem`.
Status ReadRequests(const rm_request* requests, size_t n, const Asker& asker,
                    std::vector<std::shared_ptr<engine::Operation>>* operations);

}  // namespace ringmaster::elastic
