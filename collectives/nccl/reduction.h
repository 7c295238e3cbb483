// Which of NCCL's reductions is what a request asks for.
//
// Thread rule: pure.
#pragma once

#include <optional>
#include <vector>

#include "collectives/engine/request.h"
#include "collectives/nccl/nccl_types.h"

namespace ringmaster::nccl {

struct Reduction {
  DataType type = DataType::kFloat32;
  RedOp op = kSum;
  // Not 1: inputs are multiplied by it and then added (PreMulSum), instead of `op`.
  double factor = 1;

  bool operator==(const Reduction&) const = default;
};

// Of an allreduce or reducescatter over so many ranks. Nothing: NCCL has none that means the same,
// and the host reduces it: 16-bit integers, averages and scales of integers, scales of a minimum,
// maximum or product, Adasum. The answer follows from what all ranks agree on.
//
// A bool is a byte that is 0 or 1, so any is a maximum and all a minimum.
std::optional<Reduction> ReductionFor(const engine::Request& request, int ranks);

// The factor as NCCL wants it: an element of this type (one of the floating point ones).
std::vector<char> ScalarOf(double factor, rm_dtype dtype);

}  // namespace ringmaster::nccl
