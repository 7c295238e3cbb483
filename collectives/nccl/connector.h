// Connects the ranks that take part in an operation, and decides when it is not worth another view.
//
// Owner: NcclBackend. Thread rule: the engine's.
#pragma once

#include "collectives/nccl/rank_groups.h"
#include "collectives/nccl/view_end.h"

namespace ringmaster::nccl {

class Connector {
 public:
  // `view` outlives this object.
  explicit Connector(const ViewEnd* view) : view_(view) {}

  // RM_ERR_INTERNAL: it has failed in several views one after the other, so another one is no help.
  // The first time that the ranks find out that NCCL can't be used, a line on stderr says why.
  Status Connect(RankGroup* ranks);

 private:
  const ViewEnd* const view_;
  int failed_ = 0;  // in a row
  bool said_why_ = false;
};

}  // namespace ringmaster::nccl
