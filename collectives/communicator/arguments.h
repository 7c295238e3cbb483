// What callers of collectives may give: checked before an operation counts, so that a wrong call
// leaves the view as it was. Where all ranks give the same, all get the same answer.
//
// Thread rule: pure.
#pragma once

#include <cstddef>
#include <span>

#include "ringmaster/communicator.h"
#include "ringmaster/status.h"

namespace ringmaster::communicator {

// A rank of a view, and how many there are.
struct Place {
  int rank = 0;
  int size = 0;
};

// RM_ERR_INVALID, with what was given and what is allowed; RM_OK: the call can be made. The
// parameters are those of the Communicator's methods.
Status CheckAllreduce(const void* in, const void* out, size_t count, rm_dtype dtype, rm_op op);
Status CheckAllgatherv(Place place, const void* send, const void* recv,
                       std::span<const size_t> bytes_by_rank);
Status CheckBroadcast(Place place, const void* data, size_t bytes, int root);
Status CheckReduceScatter(Place place, const void* in, const void* out,
                          std::span<const size_t> counts, rm_dtype dtype, rm_op op);
Status CheckAlltoallv(Place place, const void* send, const void* recv,
                      std::span<const size_t> bytes);
// `is_subset`: so is the communicator that is asked, and a subset has none.
Status CheckSubset(Place place, bool is_subset, std::span<const int> ranks);
// Of Communicator::Create.
Status CheckView(const Endpoint* endpoint, const CommunicatorOptions& options);

}  // namespace ringmaster::communicator
