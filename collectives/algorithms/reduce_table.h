// The table of kernels that the file of each instruction set gives to reduce.cc.
#pragma once

#include <cstddef>

namespace ringmaster::algorithms {

using ReduceFn = void (*)(void* dst, const void* const* srcs, int n, size_t count);
using DivideFn = void (*)(void* data, size_t count, int divisor);
using AverageFn = void (*)(void* dst, const void* const* srcs, int n, size_t count, int divisor);

struct TypeKernels {
  ReduceFn reduce[4];  // sum, min, max, product
  DivideFn divide;
  // The sum, divided before it is rounded to the type. Null: the same as a sum and a division.
  AverageFn average;
};

struct KernelTable {
  TypeKernels types[13];  // by rm_dtype
};

}  // namespace ringmaster::algorithms
