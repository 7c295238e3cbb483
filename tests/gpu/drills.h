// What a rank does with its GPU: each is called by all ranks of the view.
//
// Thread rule: the rank's thread.
#pragma once

#include <cstddef>

#include "tests/gpu/gpu_rank.h"

namespace ringmaster::gpu_test {

// Every collective, with results that are known.
void TryCollectives(GpuRank& r);

// Enters the rank's first view: the last rank joins the others, which have a communicator already.
void EnterBesideACommunicator(GpuRank& r, int rank, int size);

// Inputs and outputs that a busy stream of the user's comes to later, also of a result that was
// handed over.
void TryStreams(GpuRank& r);

// How the last rank of a view is killed, by a signal that it can't see.
enum class Death {
  kBeforeItLaunches,  // the others' kernels wait for it
  kInTheMidst,        // it goes through one allreduce after the other, as the others do
};
// The last rank never returns. The others run what was interrupted again, in a view of their own.
void LoseTheLast(GpuRank& r, Death death);

// Times beside NCCL's own, and what they should be: at most 2 % more than the faster of its two
// kinds of communicators from 1 MiB on, and 20 us for what is smaller. `judged`: where they aren't,
// it is wrong.
void CompareWithNccl(GpuRank& r, size_t most_bytes, bool judged);

}  // namespace ringmaster::gpu_test
