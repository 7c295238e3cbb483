// Finds the reduction of NCCL's that does what a request asks for.
//
// Thread rule: pure.
#pragma once

#include <optional>
#include <vector>

#include "collectives/engine/request.h"
#include "collectives/nccl/nccl_types.h"

namespace ringmaster::nccl {

struct NcclReduction {
  DataType type = DataType::kFloat32;
  RedOp op = kSum;
  // If not 1, inputs are multiplied by it and then added (PreMulSum), instead of `op`.
  double factor = 1;

  bool operator==(const NcclReduction&) const = default;
};

// For an allreduce or reducescatter over `ranks` ranks. No value: NCCL has no reduction with this
// meaning, and the host's backend reduces. That is so for 16-bit integers, averages and scales of
// integers, scales of a minimum, maximum or product, scales that are 0 or not finite as an element
// of the tensor's type, and Adasum. All ranks get the same answer, because it follows from what
// they have agreed on.
//
// A bool is a byte that is 0 or 1, so "any" is a maximum and "all" a minimum.
std::optional<NcclReduction> ReductionFor(const engine::Request& request, int ranks);

// The factor as NCCL wants it: an element of this type (one of the floating point ones).
std::vector<char> ScalarOf(double factor, rm_dtype dtype);

}  // namespace ringmaster::nccl
