// After a view change: which ranks hold which results, and what has to be done so that all ranks
// stand at the same point.
//
// PlanRecovery is pure, so all ranks make the same plan from the same holdings.
// Thread rule: ExchangeHoldings is a collective, for the engine's thread; the others are pure.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/worker_view.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

// What a rank says about itself as soon as the communicator of a new view is connected.
struct Holding {
  bool has_state = true;  // false: a joiner, or a worker that was dropped: it contributes nothing
                          // and needs the state
  bool at_boundary = false;  // the rank's user stands in step_end, or has not been let in yet
  uint64_t next_number = 0;  // the rank has executed all operations with lower numbers
  uint64_t step = 0;         // steps that the rank has completed
  struct Result {
    Response response;
    struct Part {
      uint64_t bytes = 0;
      std::vector<size_t> rows_by_rank;
    };
    std::vector<Part> parts;  // by batch; empty if there is no result that could be handed over
    bool holds = true;        // as in Retained
  };
  std::vector<Result> results;  // the retained results, by rising number
  SetTable sets;
  uint64_t fusion_bytes = 0;  // up to this size the rank would pack tensors together
  // Of the rank's StepRanks. A library of an earlier version says none.
  std::optional<uint64_t> ranks_epoch;
  // The rank's user has been let in, and a planned change happens at the next boundary of the new
  // view. A library of an earlier version doesn't say so.
  bool armed = false;
};

std::vector<std::byte> WriteHolding(const Holding& holding);
// False: these bytes are not a holding.
bool ReadHolding(std::span<const std::byte> bytes, Holding* holding);

// A collective: the rank `from` tells the others whom the step's ranks mean.
Status ShareStepRanks(Communicator* communicator, int from, StepRanks* ranks);

// Tells all ranks what this rank holds, and learns what they hold. RM_ERR_INTERNAL: a rank has
// another version of the library. RM_ERR_EPOCH_MOVED: the view is dead.
Status ExchangeHoldings(Communicator* communicator, const Holding& mine,
                        std::vector<Holding>* by_rank);

struct RecoveryPlan {
  struct Handover {
    Holding::Result result;
    // The lowest rank that has the result. -1: no member of its process set that has executed it
    // lives, so its number is skipped, and the ranks agree on the members' requests once more.
    int holder = 0;
  };
  std::vector<Handover> handovers;  // by rising number: what some survivors have and others lack
  uint64_t next_number = 0;         // of all ranks afterwards
  uint64_t step = 0;
  SetTable sets;                 // of all ranks afterwards
  int donor = 0;                 // the lowest rank with state
  std::vector<int> joiners;      // ranks that need state
  bool all_at_boundary = false;  // after the handovers
  bool all_armed = false;
  // The lowest value of all ranks: they must pack the same way, even if their environments differ.
  uint64_t fusion_bytes = 0;
  // The lowest rank that has begun the step that others still wait to begin, or that has executed
  // more of what moves the step's ranks: it tells all whom they mean. -1: all know the same, or all
  // begin the step in this view.
  int names_ranks = -1;
  // A rank's library knows no ranks of steps: to it a rank is the worker that has it in the current
  // view. So it is that to all, from here on.
  bool ranks_follow_views = false;
};

// RM_ERR_INTERNAL: no rank has the job's state, or nobody has kept a result that some rank lacks.
Status PlanRecovery(const std::vector<Holding>& by_rank, RecoveryPlan* plan);

}  // namespace ringmaster::engine
