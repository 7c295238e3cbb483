// Elementwise reductions of n buffers in one pass. Pure, any thread.
//
// The order of the sources is the order of the arithmetic, so ranks that reduce the same sources
// get the same bits. fp16 and bf16 are added up as float and rounded once. Integers wrap; NaN wins
// in min and max.
#pragma once

#include <cstddef>
#include <span>

#include "ringmaster/types.h"

namespace ringmaster::algorithms {

// dst[i] = (srcs[0][i] op srcs[1][i] op ...) / divisor. dst may be one of the sources, but not
// overlap one otherwise. RM_AVERAGE adds like RM_SUM: the division is only what `divisor` says
// (integers floor).
void Reduce(void* dst, std::span<const void* const> srcs, size_t count, rm_dtype dtype, rm_op op,
            int divisor = 1);

}  // namespace ringmaster::algorithms
