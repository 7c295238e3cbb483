// Decides how the ranks of a group get an NCCL communicator in a new view.
//
// Each rank tells all others what it has from the view before. All ranks then come to the same
// plan.
//
// Thread rule: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ringmaster/status.h"

namespace ringmaster::nccl {

// After so many attempts that have failed, NCCL is not tried again with these members. A network
// that fails now and then is worth another view; one that never works isn't.
constexpr int kMostFailedConnects = 2;

// What a rank tells the others, sent as these bytes: all but the version and the failed attempts is
// about the communicator that it has from an earlier view.
struct ConnectFacts {
  int32_t version = 0;    // of this rank's NCCL; 0: it has none
  int32_t rank = -1;      // its rank in that communicator
  int32_t size = 0;       // number of ranks of that communicator; 0: there is none
  int32_t revoked = 0;    // 1: it has been revoked
  int32_t faults = 0;     // views since it was made that came by a fault
  int32_t failed = 0;     // attempts to connect this group that have failed, one after the other
  uint64_t launched = 0;  // how many launches this rank has made on it
  uint64_t origin = 0;    // how it was made: communicators with equal origins are the same
};

struct ConnectPlan {
  enum class How {
    kHost,    // NCCL can't be used, the host's memory is
    kShrink,  // shrink the communicator that all have by `excluded`
    kKeep,    // keep the communicator that all have
    kInit,    // make a new one
  };
  How how = How::kInit;
  std::vector<int> excluded;  // ranks of the earlier communicator, ascending
  bool revoke = false;        // first revoke it: some ranks have done so, and all must
  bool abort = false;         // shrink with abort: a fault may have left something that hangs
  std::string why;            // kHost: the reason, for people

  bool operator==(const ConnectPlan&) const = default;
};

// Decides from the facts of all ranks, by rank.
ConnectPlan PlanConnect(std::span<const ConnectFacts> by_rank);

// The origin of a communicator that was made with this id, and of one that was shrunk.
uint64_t OriginOf(std::span<const char> id);
uint64_t OriginOf(uint64_t parent, std::span<const int> excluded);

}  // namespace ringmaster::nccl
