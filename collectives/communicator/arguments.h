// Checks the arguments of collectives before an operation is counted, so that a wrong call leaves
// the view as it was. Ranks that give the same arguments get the same answer.
//
// Thread rule: pure.
#pragma once

#include <cstddef>
#include <span>

#include "ringmaster/communicator.h"
#include "ringmaster/status.h"

namespace ringmaster::communicator {

// One rank of a view, and the size of that view.
struct RankAndSize {
  int rank = 0;
  int size = 0;
};

// Each returns RM_OK if the call can be made, else RM_ERR_INVALID with a message that says what was
// given and what is allowed. The parameters are those of the Communicator's methods.
Status CheckAllreduce(const void* in, const void* out, size_t count, rm_dtype dtype, rm_op op);
Status CheckAllgatherv(RankAndSize place, const void* send, const void* recv,
                       std::span<const size_t> bytes_by_rank);
Status CheckBroadcast(RankAndSize place, const void* data, size_t bytes, int root);
Status CheckReduceScatter(RankAndSize place, const void* in, const void* out,
                          std::span<const size_t> counts, rm_dtype dtype, rm_op op);
Status CheckAlltoallv(RankAndSize place, const void* send, const void* recv,
                      std::span<const size_t> bytes);
// `is_subset`: the communicator that is asked is itself a subset, of which no subset can be made.
Status CheckSubset(RankAndSize place, bool is_subset, std::span<const int> ranks, int channel);
// Checks the arguments of Communicator::Create.
Status CheckView(const Endpoint* endpoint, const CommunicatorOptions& options);

}  // namespace ringmaster::communicator
