// Element types and reductions: sizes, names, and multiplication by a factor (prescale, postscale).
//
// Thread rule: pure.
#pragma once

#include <cstddef>

#include "ringmaster/types.h"

namespace ringmaster::element {

inline constexpr int kTypes = RM_UINT64 + 1;  // their values are 0 to kTypes - 1

size_t Size(rm_dtype dtype);  // 0 for an unknown type
bool IsHalf(rm_dtype dtype);  // fp16 or bf16
const char* Name(rm_dtype dtype);
bool IsKnownOp(rm_op op);  // an operation that combines each element by itself, so not Adasum
const char* OpName(rm_op op);

// Fills `out` with what leaves the other operand as it is: 0 for a sum or an average, 1 for a
// product, the largest value for a minimum, the smallest for a maximum.
void FillIdentity(void* out, size_t count, rm_dtype dtype, rm_op op);

// out[i] = in[i] * factor; in == out is fine. Integers are rounded down. A factor of 1 is a copy.
void CopyScaled(const void* in, void* out, size_t count, rm_dtype dtype, double factor);

// The type in which the elements of several ranks are summed before the sum is divided, so that no
// sum overflows whose average doesn't: float for halves, a wider integer for integers. It is
// `dtype` itself if there is no wider type.
rm_dtype SumType(rm_dtype dtype);
// Convert elements to SumType(dtype), and back. Halves, and only they, are multiplied by `factor`.
void Widen(const void* in, void* out, size_t count, rm_dtype dtype, float factor);
void Narrow(const void* in, void* out, size_t count, rm_dtype dtype);

}  // namespace ringmaster::element
