// fp16 and bf16 as float and back, rounded to the nearest even; NaN stays NaN.
//
// Included by files that are compiled for different instruction sets. So everything here has
// internal linkage, and no template of the standard library is used: the linker might keep the copy
// that was compiled for a newer processor.
// Thread rule: pure.
#pragma once

#include <cstdint>
#include <cstring>

namespace ringmaster::element {

static inline float BFloat16ToFloat(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

static inline uint16_t FloatToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

static inline float HalfToFloat(uint16_t half) {
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
  float scaled;
  std::memcpy(&scaled, &magnitude, sizeof(scaled));
  // The biases of the exponents differ by 112. A multiplication is right for subnormals, too.
  scaled *= 0x1p112f;
  uint32_t bits;
  std::memcpy(&bits, &scaled, sizeof(bits));
  if ((half & 0x7c00) == 0x7c00) bits = magnitude | 0x7f800000;
  bits |= static_cast<uint32_t>(half & 0x8000) << 16;
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

static inline uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  uint32_t half;
  if (bits > 0x7f800000) {
    half = 0x7e00;
  } else if (bits >= 0x477ff000) {  // rounds to infinity
    half = 0x7c00;
  } else if (bits < 0x38800000) {
    // Subnormal: adding 0.5 lets the adder do the shift and the rounding.
    float magnitude;
    std::memcpy(&magnitude, &bits, sizeof(magnitude));
    magnitude += 0.5f;
    std::memcpy(&half, &magnitude, sizeof(half));
    half -= 0x3f000000;
  } else {
    half = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace ringmaster::element
