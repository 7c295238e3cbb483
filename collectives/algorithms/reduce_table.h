// What each instruction set's file of kernels gives to reduce.cc.
#pragma once

#include <cstddef>

namespace ringmaster::algorithms {

using ReduceFn = void (*)(void* dst, const void* const* srcs, int n, size_t count);
using DivideFn = void (*)(void* data, size_t count, int divisor);

struct TypeKernels {
  ReduceFn reduce[4];  // sum, min, max, product
  DivideFn divide;
};

struct KernelTable {
  TypeKernels types[13];  // by rm_dtype
};

}  // namespace ringmaster::algorithms
