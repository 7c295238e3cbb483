#include "collectives/engine/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ringmaster::engine {
namespace {

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {  // zero and subnormals are exact multiples of 2^-24
    return (sign ? -1.0f : 1.0f) * static_cast<float>(mantissa) * 0x1p-24f;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (mantissa << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (magnitude >= 65520.0f) return sign | 0x7c00;
  if (magnitude < 0x1p-14f) {  // the rounding of nearbyint is to even, as everywhere else
    return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f));
  }
  const uint32_t rounded = (bits & 0x7fffffff) + 0xfff + ((bits >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded - (112u << 23)) >> 13);
}

float Bf16ToFloat(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

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

size_t DtypeSize(rm_dtype dtype) {
  switch (dtype) {
    case RM_DTYPE_ANY_INT_:
      break;
    case RM_UINT8:
    case RM_INT8:
      return 1;
    case RM_FLOAT16:
    case RM_BFLOAT16:
      return 2;
    case RM_INT32:
    case RM_FLOAT32:
      return 4;
    case RM_INT64:
    case RM_FLOAT64:
      return 8;
  }
  return 0;
}

const char* DtypeName(rm_dtype dtype) {
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
    if (in != out && count > 0) std::memmove(out, in, count * DtypeSize(dtype));
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
      return ScaleShort<Bf16ToFloat, FloatToBf16>(in, out, count, factor);
    case RM_FLOAT32:
      return ScaleFloat<float>(in, out, count, factor);
    case RM_FLOAT64:
      return ScaleFloat<double>(in, out, count, factor);
  }
}

}  // namespace ringmaster::engine
