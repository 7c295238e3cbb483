// Element types and reductions: sizes, names, and multiplication by a factor (prescale, postscale).
//
// Thread rule: pure.
#pragma once

#include <cstddef>

#include "ringmaster/types.h"

namespace ringmaster::element {

size_t Size(rm_dtype dtype);  // 0 for an unknown type
const char* Name(rm_dtype dtype);
bool IsKnownOp(rm_op op);
const char* OpName(rm_op op);

// out[i] = in[i] * factor; in == out is fine. Integers are rounded down. A factor of 1 is a copy.
void CopyScaled(const void* in, void* out, size_t count, rm_dtype dtype, double factor);

}  // namespace ringmaster::element
