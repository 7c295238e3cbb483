#include "collectives/element/element.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "collectives/element/half.h"

namespace ringmaster::element {
namespace {

template <typename T>
void ScaleFloat(const void* in, void* out, size_t count, double factor) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  const T by = static_cast<T>(factor);
  for (size_t i = 0; i < count; ++i) to[i] = from[i] * by;
}

template <typename T>
void ScaleInteger(const void* in, void* out, size_t count, double factor) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  for (size_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(static_cast<int64_t>(std::floor(static_cast<double>(from[i]) * factor)));
  }
}

template <float (*ToFloat)(uint16_t), uint16_t (*FromFloat)(float)>
void ScaleShort(const void* in, void* out, size_t count, double factor) {
  const auto* from = static_cast<const uint16_t*>(in);
  auto* to = static_cast<uint16_t*>(out);
  const auto by = static_cast<float>(factor);
  for (size_t i = 0; i < count; ++i) to[i] = FromFloat(ToFloat(from[i]) * by);
}

}  // namespace

size_t Size(rm_dtype dtype) {
  static constexpr size_t kBytes[] = {1, 1, 4, 8, 2, 2, 4, 8};
  return dtype >= RM_UINT8 && dtype <= RM_FLOAT64 ? kBytes[dtype] : 0;
}

bool IsKnownOp(rm_op op) { return op >= RM_SUM && op <= RM_PRODUCT; }

const char* Name(rm_dtype dtype) {
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
      return "uint8";
    case RM_INT8:
      return "int8";
    case RM_INT32:
      return "int32";
    case RM_INT64:
      return "int64";
    case RM_FLOAT16:
      return "float16";
    case RM_BFLOAT16:
      return "bfloat16";
    case RM_FLOAT32:
      return "float32";
    case RM_FLOAT64:
      return "float64";
  }
  return "unknown";
}

const char* OpName(rm_op op) {
  switch (op) {
    case RM_OP_ANY_INT_:
      break;
    case RM_SUM:
      return "sum";
    case RM_AVERAGE:
      return "average";
    case RM_MIN:
      return "min";
    case RM_MAX:
      return "max";
    case RM_PRODUCT:
      return "product";
  }
  return "unknown";
}

void CopyScaled(const void* in, void* out, size_t count, rm_dtype dtype, double factor) {
  if (factor == 1.0) {
    if (in != out && count > 0) std::memmove(out, in, count * Size(dtype));
    return;
  }
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
      return ScaleInteger<uint8_t>(in, out, count, factor);
    case RM_INT8:
      return ScaleInteger<int8_t>(in, out, count, factor);
    case RM_INT32:
      return ScaleInteger<int32_t>(in, out, count, factor);
    case RM_INT64:
      return ScaleInteger<int64_t>(in, out, count, factor);
    case RM_FLOAT16:
      return ScaleShort<HalfToFloat, FloatToHalf>(in, out, count, factor);
    case RM_BFLOAT16:
      return ScaleShort<BFloat16ToFloat, FloatToBFloat16>(in, out, count, factor);
    case RM_FLOAT32:
      return ScaleFloat<float>(in, out, count, factor);
    case RM_FLOAT64:
      return ScaleFloat<double>(in, out, count, factor);
  }
}

}  // namespace ringmaster::element
