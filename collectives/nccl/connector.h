// Connects the ranks that take part in an operation, and decides when trying again in another view
// is of no use: then tensors go through the host's memory.
//
// Owner: NcclBackend. Thread rule: the engine's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collectives/nccl/rank_groups.h"
#include "collectives/nccl/view_end.h"

namespace ringmaster::nccl {

class Connector {
 public:
  // `view` outlives this object. `needs_nccl`: the job wants NCCL or nothing.
  Connector(const ViewEnd* view, bool needs_nccl) : view_(view), needs_nccl_(needs_nccl) {}

  // A view of these workers begins. If they are others than before, what has failed is tried again.
  void Install(std::vector<std::string> workers);
  // `device`: the calling thread's. When connecting has failed too often with these workers, or if
  // NCCL can't be used otherwise, the ranks use the host's memory, and a line on stderr says why;
  // RM_ERR_INTERNAL with the reason if the job needs NCCL. RM_ERR_EPOCH_MOVED: the ranks were
  // connected with a communicator on another device; the next view makes one on this device.
  Status Connect(RankGroup* ranks, int device);

 private:
  struct Failures {
    int in_a_row = 0;
    std::string last;
  };
  Status CheckLink(const RankGroup& ranks, const Failures& failures);

  const ViewEnd* const view_;
  const bool needs_nccl_;
  std::vector<std::string> workers_;      // of the last view, sorted
  std::map<int32_t, Failures> failures_;  // with these workers, by process set
  std::string said_;                      // the last reason on stderr
};

}  // namespace ringmaster::nccl
