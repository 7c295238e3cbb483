#include "collectives/algorithms/reduce.h"

#include "collectives/algorithms/reduce_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ringmaster::algorithms {

namespace kernels_base {
extern const KernelTable kTable;
}
#if defined(__x86_64__)
namespace kernels_avx2 {
extern const KernelTable kTable;
}
namespace kernels_avx512 {
extern const KernelTable kTable;
}
#endif

namespace {

#if defined(__x86_64__)
// Asks the processor itself: not every compiler's __builtin_cpu_supports knows "f16c".
bool HasF16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

const KernelTable& ChooseTable() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && HasF16c();
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (avx512) return kernels_avx512::kTable;
  if (avx2) return kernels_avx2::kTable;
#endif
  return kernels_base::kTable;
}

const TypeKernels& KernelsFor(rm_dtype dtype) {
  static const KernelTable& table = ChooseTable();
  return table.types[dtype];
}

int OpIndex(rm_op op) {
  switch (op) {
    case RM_MIN:
      return 1;
    case RM_MAX:
      return 2;
    case RM_PRODUCT:
      return 3;
    default:
      return 0;
  }
}

}  // namespace

void Reduce(void* dst, std::span<const void* const> srcs, size_t count, rm_dtype dtype, rm_op op,
            int divisor) {
  const TypeKernels& kernels = KernelsFor(dtype);
  if (divisor > 1 && kernels.average != nullptr && OpIndex(op) == OpIndex(RM_SUM)) {
    kernels.average(dst, srcs.data(), static_cast<int>(srcs.size()), count, divisor);
    return;
  }
  kernels.reduce[OpIndex(op)](dst, srcs.data(), static_cast<int>(srcs.size()), count);
  if (divisor > 1) kernels.divide(dst, count, divisor);
}

}  // namespace ringmaster::algorithms
