#include "collectives/element/element.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

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

// A value that no integer of 64 bits can hold becomes the nearest one; a value that T can't hold
// wraps.
template <typename T>
T ToInteger(long double value) {
  if (!(value >= -0x1p63L)) return static_cast<T>(INT64_MIN);
  if (value >= 0x1p64L) return static_cast<T>(UINT64_MAX);
  return value < 0 ? static_cast<T>(static_cast<int64_t>(value))
                   : static_cast<T>(static_cast<uint64_t>(value));
}

constexpr double kLargestExact = 0x1p53;  // every integer up to here is a double

// Products are rounded to double, so that 3 * (1.0 / 3) is 1 and not a little less. Integers that a
// double can't hold are multiplied in long double, which holds every T.
template <typename T>
T Scaled(T value, double factor) {
  const double product = static_cast<double>(value) * factor;
  if constexpr (sizeof(T) == 8) {
    const double size = std::max(std::abs(static_cast<double>(value)), std::abs(product));
    if (!(size < kLargestExact)) {
      return ToInteger<T>(
          std::floor(static_cast<long double>(value) * static_cast<long double>(factor)));
    }
  }
  return ToInteger<T>(std::floor(product));
}

template <typename T>
void ScaleInteger(const void* in, void* out, size_t count, double factor) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  for (size_t i = 0; i < count; ++i) to[i] = Scaled(from[i], factor);
}

void ScaleBool(const void* in, void* out, size_t count, double factor) {
  const auto* from = static_cast<const uint8_t*>(in);
  auto* to = static_cast<uint8_t*>(out);
  for (size_t i = 0; i < count; ++i) to[i] = from[i] != 0 && factor != 0;
}

template <typename T>
void Fill(void* out, size_t count, T zero, T one, T lowest, T highest, rm_op op) {
  const T value = op == RM_PRODUCT ? one : op == RM_MIN ? highest : op == RM_MAX ? lowest : zero;
  std::fill_n(static_cast<T*>(out), count, value);
}

template <typename T>
void FillInteger(void* out, size_t count, rm_op op) {
  using Limits = std::numeric_limits<T>;
  Fill<T>(out, count, 0, 1, Limits::min(), Limits::max(), op);
}

template <typename T>
void FillFloat(void* out, size_t count, rm_op op) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  Fill<T>(out, count, 0, 1, -kInfinity, kInfinity, op);
}

template <typename From, typename To>
void Convert(const void* in, void* out, size_t count) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
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
  static constexpr size_t kBytes[kTypes] = {1, 1, 4, 8, 2, 2, 4, 8, 1, 2, 2, 4, 8};
  return dtype >= 0 && dtype < kTypes ? kBytes[dtype] : 0;
}

bool IsHalf(rm_dtype dtype) { return dtype == RM_FLOAT16 || dtype == RM_BFLOAT16; }

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
    case RM_BOOL:
      return "bool";
    case RM_UINT16:
      return "uint16";
    case RM_INT16:
      return "int16";
    case RM_UINT32:
      return "uint32";
    case RM_UINT64:
      return "uint64";
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
    case RM_ADASUM:
      return "adasum";
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
    case RM_BOOL:
      return ScaleBool(in, out, count, factor);
    case RM_UINT16:
      return ScaleInteger<uint16_t>(in, out, count, factor);
    case RM_INT16:
      return ScaleInteger<int16_t>(in, out, count, factor);
    case RM_UINT32:
      return ScaleInteger<uint32_t>(in, out, count, factor);
    case RM_UINT64:
      return ScaleInteger<uint64_t>(in, out, count, factor);
  }
}

void FillIdentity(void* out, size_t count, rm_dtype dtype, rm_op op) {
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      return;
    case RM_UINT8:
      return FillInteger<uint8_t>(out, count, op);
    case RM_INT8:
      return FillInteger<int8_t>(out, count, op);
    case RM_INT32:
      return FillInteger<int32_t>(out, count, op);
    case RM_INT64:
      return FillInteger<int64_t>(out, count, op);
    case RM_FLOAT16:
      return Fill<uint16_t>(out, count, 0, 0x3c00, 0xfc00, 0x7c00, op);
    case RM_BFLOAT16:
      return Fill<uint16_t>(out, count, 0, 0x3f80, 0xff80, 0x7f80, op);
    case RM_FLOAT32:
      return FillFloat<float>(out, count, op);
    case RM_FLOAT64:
      return FillFloat<double>(out, count, op);
    case RM_BOOL:
      return Fill<uint8_t>(out, count, 0, 1, 0, 1, op);
    case RM_UINT16:
      return FillInteger<uint16_t>(out, count, op);
    case RM_INT16:
      return FillInteger<int16_t>(out, count, op);
    case RM_UINT32:
      return FillInteger<uint32_t>(out, count, op);
    case RM_UINT64:
      return FillInteger<uint64_t>(out, count, op);
  }
}

rm_dtype SumType(rm_dtype dtype) {
  switch (dtype) {
    case RM_FLOAT16:
    case RM_BFLOAT16:
      return RM_FLOAT32;
    case RM_UINT8:
    case RM_INT8:
    case RM_UINT16:
    case RM_INT16:
      return RM_INT32;
    case RM_INT32:
    case RM_UINT32:
      return RM_INT64;
    default:
      return dtype;
  }
}

void Widen(const void* in, void* out, size_t count, rm_dtype dtype, float factor) {
  switch (dtype) {
    case RM_UINT8:
      return Convert<uint8_t, int32_t>(in, out, count);
    case RM_INT8:
      return Convert<int8_t, int32_t>(in, out, count);
    case RM_UINT16:
      return Convert<uint16_t, int32_t>(in, out, count);
    case RM_INT16:
      return Convert<int16_t, int32_t>(in, out, count);
    case RM_INT32:
      return Convert<int32_t, int64_t>(in, out, count);
    case RM_UINT32:
      return Convert<uint32_t, int64_t>(in, out, count);
    default:
      break;
  }
  const auto* from = static_cast<const uint16_t*>(in);
  auto* to = static_cast<float*>(out);
  const auto widen = dtype == RM_FLOAT16 ? HalfToFloat : BFloat16ToFloat;
  for (size_t i = 0; i < count; ++i) to[i] = widen(from[i]) * factor;
}

void Narrow(const void* in, void* out, size_t count, rm_dtype dtype) {
  switch (dtype) {
    case RM_UINT8:
    case RM_INT8:
      return Convert<int32_t, uint8_t>(in, out, count);
    case RM_UINT16:
    case RM_INT16:
      return Convert<int32_t, uint16_t>(in, out, count);
    case RM_INT32:
    case RM_UINT32:
      return Convert<int64_t, uint32_t>(in, out, count);
    default:
      break;
  }
  const auto* from = static_cast<const float*>(in);
  auto* to = static_cast<uint16_t*>(out);
  const auto narrow = dtype == RM_FLOAT16 ? FloatToHalf : FloatToBFloat16;
  for (size_t i = 0; i < count; ++i) to[i] = narrow(from[i]);
}

}  // namespace ringmaster::element
