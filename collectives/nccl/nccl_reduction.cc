#include "collectives/nccl/nccl_reduction.h"

#include <cmath>
#include <cstring>

#include "collectives/element/element.h"

namespace ringmaster::nccl {
namespace {

std::optional<DataType> TypeOf(rm_dtype dtype) {
  switch (dtype) {
    case RM_BOOL:
    case RM_UINT8:
      return DataType::kUint8;
    case RM_INT8:
      return DataType::kInt8;
    case RM_INT32:
      return DataType::kInt32;
    case RM_UINT32:
      return DataType::kUint32;
    case RM_INT64:
      return DataType::kInt64;
    case RM_UINT64:
      return DataType::kUint64;
    case RM_FLOAT16:
      return DataType::kFloat16;
    case RM_BFLOAT16:
      return DataType::kBfloat16;
    case RM_FLOAT32:
      return DataType::kFloat32;
    case RM_FLOAT64:
      return DataType::kFloat64;
    default:
      return std::nullopt;
  }
}

bool IsFloating(rm_dtype dtype) {
  return element::IsHalf(dtype) || dtype == RM_FLOAT32 || dtype == RM_FLOAT64;
}

std::optional<RedOp> PlainOp(const engine::Request& request) {
  const bool is_bool = request.dtype == RM_BOOL;
  switch (request.op) {
    case RM_SUM:
      return is_bool ? kMax : kSum;
    case RM_AVERAGE:
      if (IsFloating(request.dtype)) return kAvg;
      return std::nullopt;  // NCCL rounds integers towards zero, we round down
    case RM_MIN:
      return kMin;
    case RM_MAX:
      return kMax;
    case RM_PRODUCT:
      return is_bool ? kMin : kProd;
    default:
      return std::nullopt;
  }
}

// NCCL takes a factor as an element of the tensor's type. No value: it isn't this factor any more.
std::optional<NcclReduction> SumWithFactor(DataType type, rm_dtype dtype, double factor) {
  const std::vector<char> scalar = ScalarOf(factor, dtype);
  double narrow = factor;
  if (dtype != RM_FLOAT64) {
    auto widened = static_cast<float>(factor);
    if (element::IsHalf(dtype)) element::Widen(scalar.data(), &widened, 1, dtype, 1.0f);
    narrow = widened;
  }
  if (!std::isfinite(narrow) || (narrow == 0 && factor != 0)) return std::nullopt;
  return NcclReduction{type, kSum, factor};
}

}  // namespace

std::optional<NcclReduction> ReductionFor(const engine::Request& request, int ranks) {
  const auto type = TypeOf(request.dtype);
  const auto op = PlainOp(request);
  if (!type || !op) return std::nullopt;
  const double scale = request.prescale * request.postscale;
  if (request.prescale == 1.0 && request.postscale == 1.0) return NcclReduction{*type, *op, 1};
  if (!IsFloating(request.dtype)) return std::nullopt;
  if (request.op == RM_SUM) return SumWithFactor(*type, request.dtype, scale);
  if (request.op == RM_AVERAGE) return SumWithFactor(*type, request.dtype, scale / ranks);
  return std::nullopt;
}

std::vector<char> ScalarOf(double factor, rm_dtype dtype) {
  std::vector<char> scalar(element::Size(dtype));
  const auto narrow = static_cast<float>(factor);
  if (dtype == RM_FLOAT64) {
    std::memcpy(scalar.data(), &factor, sizeof(factor));
  } else if (dtype == RM_FLOAT32) {
    std::memcpy(scalar.data(), &narrow, sizeof(narrow));
  } else {
    element::Narrow(&narrow, scalar.data(), 1, dtype);
  }
  return scalar;
}

}  // namespace ringmaster::nccl
