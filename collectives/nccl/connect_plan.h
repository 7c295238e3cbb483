// How the ranks of a group get an NCCL communicator in a new view.
//
// All ranks tell all others what they have from the view before, and all decide the same from it.
//
// Thread rule: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ringmaster/status.h"

namespace ringmaster::nccl {

// What a rank tells about itself. It travels as these bytes.
struct ConnectFacts {
  int32_t version = 0;  // of its NCCL; 0: it has none
  int32_t rank = -1;    // in the communicator that it has from before
  int32_t size = 0;     // ... and the ranks of that; 0: it has none
  int32_t revoked = 0;  // ... which has been revoked
  int32_t faults = 0;   // ... and the views since then that came by no plan
  int32_t unused = 0;
  uint64_t launched = 0;  // ... and what has been launched on it here
  uint64_t lineage = 0;   // ... and how that came to be: communicators with the same are the same
};

struct ConnectPlan {
  enum class How {
    kHost,    // without NCCL: the host's memory is used
    kShrink,  // the communicator that all have, without `excluded`
    kKeep,    // the communicator that all have, as it is
    kInit,    // a new one
  };
  How how = How::kInit;
  std::vector<int> excluded;  // ranks of the communicator from before, ascending
  bool revoke = false;        // first: some ranks have, and so must all
  bool abort = false;         // it may hang in what a fault has left of it
  std::string why;            // kHost: for people

  bool operator==(const ConnectPlan&) const = default;
};

// RM_ERR_INTERNAL: their versions of NCCL don't fit each other.
Status PlanConnect(std::span<const ConnectFacts> by_rank, ConnectPlan* plan);

// The lineage of a communicator that was made with this id, and of one that was shrunk.
uint64_t LineageOf(std::span<const char> id);
uint64_t LineageOf(uint64_t parent, std::span<const int> excluded);

}  // namespace ringmaster::nccl
