// Which ranks hold which results after a view change, and what follows from it.
//
// PlanRecovery is pure: all ranks plan the same from the same holdings.
// Thread rule: ExchangeHoldings is a collective; the others none.
#pragma once

#include <deque>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/set_table.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

// What a rank says about itself right after the communicator of a new view stands.
struct Holding {
  bool has_state = true;  // false: a joiner, or a worker that was dropped: it contributes nothing
                          // and needs the state
  bool at_boundary = false;  // the rank's user stands in step_end, or has not entered yet
  uint64_t next_number = 0;  // the rank has executed all operations with lower numbers
  uint64_t step = 0;
  struct Result {
    Response response;
    struct Part {
      uint64_t bytes = 0;
      std::vector<size_t> rows_by_rank;
    };
    std::vector<Part> parts;  // by batch; of an error: none
    bool holds = true;        // as in Retained
  };
  std::vector<Result> results;  // retained, by rising number
  SetTable sets;
  uint64_t fusion_bytes = 0;  // up to this size the rank would pack tensors together
};

std::vector<std::byte> WriteHolding(const Holding& holding);
bool ReadHolding(std::span<const std::byte> bytes, Holding* holding);

// Tells all ranks what this rank holds, and learns what they hold.
Status ExchangeHoldings(Communicator* communicator, const Holding& mine,
                        std::vector<Holding>* by_rank);

struct RecoveryPlan {
  struct Handover {
    Holding::Result result;
    // The lowest rank that has the result. -1: no member of its process set that has executed it
    // lives, so its number is skipped, and the ranks agree on the members' requests once more.
    int holder = 0;
  };
  std::vector<Handover> handovers;  // by rising number: what some survivors hold and others lack
  uint64_t next_number = 0;         // of all ranks afterwards
  uint64_t step = 0;
  SetTable sets;                 // of all ranks afterwards
  int donor = 0;                 // the lowest rank with state
  std::vector<int> joiners;      // ranks that need state
  bool all_at_boundary = false;  // after the handovers
  // The lowest value of all ranks: they have to pack the same way, whatever their environments say.
  uint64_t fusion_bytes = 0;
};

Status PlanRecovery(const std::vector<Holding>& by_rank, RecoveryPlan* plan);

}  // namespace ringmaster::engine
