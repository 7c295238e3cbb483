// Element types: size, name, and multiplication by a factor (prescale, postscale).
#pragma once

#include <cstddef>

#include "ringmaster/ringmaster.h"

namespace ringmaster::engine {

size_t DtypeSize(rm_dtype dtype);  // 0 for an unknown type
const char* DtypeName(rm_dtype dtype);
const char* OpName(rm_op op);

// out[i] = in[i] * factor; in == out is fine. Integers are rounded down. A factor of 1 is a copy.
void CopyScaled(const void* in, void* out, size_t count, rm_dtype dtype, double factor);

}  // namespace ringmaster::engine
