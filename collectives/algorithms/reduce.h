// Elementwise reductions of n buffers in one pass. Pure, any thread.
//
// The sources are combined in their order, so ranks that reduce the same sources get the same bits.
// fp16 and bf16 are added up, and divided, as float and rounded once, so a sum that is too large
// for the type has a right average. Integers wrap; in min and max a NaN wins.
#pragma once

#include <cstddef>
#include <span>

#include "ringmaster/types.h"

namespace ringmaster::algorithms {

// dst[i] = (srcs[0][i] op srcs[1][i] op ...) / divisor. dst may be one of the sources, but must not
// overlap one in part. RM_AVERAGE adds like RM_SUM: only `divisor` makes it an average. Quotients
// of integers are rounded down.
void Reduce(void* dst, std::span<const void* const> srcs, size_t count, rm_dtype dtype, rm_op op,
            int divisor = 1);

}  // namespace ringmaster::algorithms
