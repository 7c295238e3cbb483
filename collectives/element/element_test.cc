#include "collectives/element/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "collectives/element/half.h"

namespace ringmaster::element {
namespace {

// The value of a half by its definition, computed with the C++ library instead of our operations on
// bits.
float HalfByDefinition(uint16_t half) {
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 0x1f;
  const int mantissa = half & 0x3ff;
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

TEST(Half, EveryHalfIsReadAsDefinedAndWrittenBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = HalfToFloat(half);
    const float expected = HalfByDefinition(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(HalfToFloat(FloatToHalf(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(FloatToHalf(value), half) << bits;
  }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {
    const float low = HalfToFloat(half);
    const float high = HalfToFloat(half + 1);
    const float middle = low + (high - low) / 2;  // exact: a float has 13 bits more
    ASSERT_EQ(FloatToHalf(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, low)), half);
    ASSERT_EQ(FloatToHalf(std::nextafter(middle, high)), half + 1);
  }
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
}

TEST(BFloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(FloatToBFloat16(1.0f), 0x3f80);
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x1p-8f), 0x3f80);  // a tie, down to even
  EXPECT_EQ(FloatToBFloat16(1.0f + 0x3p-8f), 0x3f82);  // a tie, up to even
  EXPECT_EQ(BFloat16ToFloat(0xc040), -3.0f);
  EXPECT_TRUE(std::isnan(BFloat16ToFloat(FloatToBFloat16(std::nanf("")))));
}

TEST(Element, UnknownTypesHaveNoSizeAndUnknownReductionsAreNotKnown) {
  EXPECT_EQ(Size(RM_FLOAT64), 8u);
  EXPECT_EQ(Size(RM_BFLOAT16), 2u);
  EXPECT_EQ(Size(static_cast<rm_dtype>(kTypes)), 0u);
  EXPECT_EQ(Size(static_cast<rm_dtype>(-1)), 0u);
  EXPECT_TRUE(IsKnownOp(RM_PRODUCT));
  EXPECT_FALSE(IsKnownOp(static_cast<rm_op>(5)));
  EXPECT_FALSE(IsKnownOp(static_cast<rm_op>(-1)));
}

TEST(Element, CopyScaledIsExactForTheLargestIntegers) {
  const std::vector<uint64_t> unsigned_in = {UINT64_MAX, (uint64_t{1} << 63) + 2};
  std::vector<uint64_t> unsigned_out(2);
  CopyScaled(unsigned_in.data(), unsigned_out.data(), 2, RM_UINT64, 0.5);
  EXPECT_EQ(unsigned_out, (std::vector<uint64_t>{INT64_MAX, (uint64_t{1} << 62) + 1}));
  CopyScaled(unsigned_in.data(), unsigned_out.data(), 1, RM_UINT64, 8.0);
  EXPECT_EQ(unsigned_out[0], UINT64_MAX);

  const std::vector<int64_t> odd = {(int64_t{1} << 53) + 1, INT64_MIN};
  std::vector<int64_t> odd_out(2);
  CopyScaled(odd.data(), odd_out.data(), 2, RM_INT64, -1.0);
  EXPECT_EQ(odd_out[0], -odd[0]);

  const std::vector<uint8_t> flags = {0, 1};
  std::vector<uint8_t> scaled(2);
  CopyScaled(flags.data(), scaled.data(), 2, RM_BOOL, 0.25);
  EXPECT_EQ(scaled, flags);
}

// As Horovod does, and as the narrower integers do: the product of a multiple of n and 1.0 / n is
// rounded before it is cut.
TEST(Element, CopyScaledDividesMultiplesOfSmallNumbersAlikeInEveryWidth) {
  for (int64_t n = 1; n <= 48; ++n) {
    for (const int64_t quotient : {-7, -1, 0, 1, 2, 1000}) {
      const int64_t wide = n * quotient;
      const auto narrow = static_cast<int32_t>(wide);
      int64_t wide_out = 0;
      int32_t narrow_out = 0;
      const double factor = 1.0 / static_cast<double>(n);
      CopyScaled(&wide, &wide_out, 1, RM_INT64, factor);
      CopyScaled(&narrow, &narrow_out, 1, RM_INT32, factor);
      EXPECT_EQ(wide_out, narrow_out) << wide << " / " << n;
    }
  }
  const int64_t three = 3;
  int64_t third = 0;
  CopyScaled(&three, &third, 1, RM_INT64, 1.0 / 3);
  EXPECT_EQ(third, 1);
}

TEST(Element, EveryTypeComesBackFromItsSumType) {
  for (int type = 0; type < kTypes; ++type) {
    const auto dtype = static_cast<rm_dtype>(type);
    if (SumType(dtype) == dtype) continue;
    ASSERT_GT(Size(SumType(dtype)), Size(dtype));
    std::vector<uint8_t> in(2 * Size(dtype)), back(in.size()), wide(2 * Size(SumType(dtype)));
    in.back() = 0xbc;  // a negative value if the type has any
    in[Size(dtype) - 1] = 0x3c;
    Widen(in.data(), wide.data(), 2, dtype, 1.0f);
    Narrow(wide.data(), back.data(), 2, dtype);
    EXPECT_EQ(back, in) << Name(dtype);
  }
}

TEST(Element, CopyScaledMultipliesEveryTypeAndRoundsIntegersDown) {
  const std::vector<int32_t> integers = {-3, 3};
  std::vector<int32_t> halves(2);
  CopyScaled(integers.data(), halves.data(), 2, RM_INT32, 0.5);
  EXPECT_EQ(halves, (std::vector<int32_t>{-2, 1}));

  const std::vector<uint16_t> fp16 = {FloatToHalf(1.5f), FloatToHalf(-2.0f)};
  std::vector<uint16_t> doubled(2);
  CopyScaled(fp16.data(), doubled.data(), 2, RM_FLOAT16, 2.0);
  EXPECT_EQ(HalfToFloat(doubled[0]), 3.0f);
  EXPECT_EQ(HalfToFloat(doubled[1]), -4.0f);

  std::vector<uint16_t> bf16 = {FloatToBFloat16(0.5f)};
  CopyScaled(bf16.data(), bf16.data(), 1, RM_BFLOAT16, 4.0);
  EXPECT_EQ(BFloat16ToFloat(bf16[0]), 2.0f);
}

}  // namespace
}  // namespace ringmaster::element
