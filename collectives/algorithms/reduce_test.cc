#include "collectives/algorithms/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "collectives/algorithms/reduce_table.h"
#include "collectives/element/element.h"

namespace ringmaster::algorithms {

namespace kernels_base {
extern const KernelTable kTable;
}

namespace {

template <typename T>
std::vector<T> ReduceAll(const std::vector<std::vector<T>>& inputs, rm_dtype dtype, rm_op op,
                         int divisor = 1) {
  std::vector<const void*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<T> out(inputs[0].size());
  Reduce(out.data(), sources, out.size(), dtype, op, divisor);
  return out;
}

TEST(Reduce, EveryNumberOfSourcesAndEveryRestOfAVector) {
  for (size_t sources = 1; sources <= 9; ++sources) {
    for (size_t count : {0, 1, 7, 31, 64, 1023, 1024, 1025, 5000}) {
      std::vector<std::vector<int32_t>> inputs(sources, std::vector<int32_t>(count));
      for (size_t k = 0; k < sources; ++k) {
        for (size_t i = 0; i < count; ++i) inputs[k][i] = static_cast<int32_t>((k + 1) * (i + 1));
      }
      auto out = ReduceAll(inputs, RM_INT32, RM_SUM);
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[i], static_cast<int32_t>(sources * (sources + 1) / 2 * (i + 1)));
      }
    }
  }
}

TEST(Reduce, DestinationMayBeAnyOfTheSources) {
  for (size_t target = 0; target < 5; ++target) {
    std::vector<std::vector<float>> inputs(5, std::vector<float>(3000));
    for (size_t k = 0; k < 5; ++k)
      std::fill(inputs[k].begin(), inputs[k].end(), static_cast<float>(1 << k));
    std::vector<const void*> sources;
    for (const auto& input : inputs) sources.push_back(input.data());
    Reduce(inputs[target].data(), sources, 3000, RM_FLOAT32, RM_SUM);
    for (float value : inputs[target]) ASSERT_EQ(value, 31);
  }
}

TEST(Reduce, IntegersWrapAndAveragesFloor) {
  EXPECT_EQ(ReduceAll<uint8_t>({{250}, {10}}, RM_UINT8, RM_SUM)[0], 4);
  EXPECT_EQ(ReduceAll<int8_t>({{100}, {100}}, RM_INT8, RM_SUM)[0], -56);
  EXPECT_EQ(ReduceAll<int32_t>({{INT32_MAX}, {1}}, RM_INT32, RM_SUM)[0], INT32_MIN);
  EXPECT_EQ(ReduceAll<int64_t>({{INT64_MAX}, {2}}, RM_INT64, RM_PRODUCT)[0], -2);
  EXPECT_EQ(ReduceAll<int32_t>({{-3}, {-4}}, RM_INT32, RM_AVERAGE, 2)[0], -4);
  EXPECT_EQ(ReduceAll<int32_t>({{3}, {4}}, RM_INT32, RM_AVERAGE, 2)[0], 3);
  EXPECT_EQ(ReduceAll<int8_t>({{-1}, {0}}, RM_INT8, RM_AVERAGE, 2)[0], -1);
  EXPECT_EQ(ReduceAll<int8_t>({{-128}, {127}}, RM_INT8, RM_MIN)[0], -128);
  EXPECT_EQ(ReduceAll<uint8_t>({{128}, {127}}, RM_UINT8, RM_MAX)[0], 128);
  EXPECT_EQ(ReduceAll<uint16_t>({{65535}, {65535}}, RM_UINT16, RM_PRODUCT)[0], 1);
  EXPECT_EQ(ReduceAll<uint16_t>({{65535}, {2}}, RM_UINT16, RM_MAX)[0], 65535);
  EXPECT_EQ(ReduceAll<int16_t>({{-32768}, {1}}, RM_INT16, RM_MIN)[0], -32768);
  EXPECT_EQ(ReduceAll<int16_t>({{-3}, {0}}, RM_INT16, RM_AVERAGE, 2)[0], -2);
  EXPECT_EQ(ReduceAll<uint32_t>({{UINT32_MAX}, {1}}, RM_UINT32, RM_MAX)[0], UINT32_MAX);
  EXPECT_EQ(ReduceAll<uint32_t>({{UINT32_MAX}, {0}}, RM_UINT32, RM_AVERAGE, 2)[0], INT32_MAX);
  EXPECT_EQ(ReduceAll<uint64_t>({{UINT64_MAX}, {1}}, RM_UINT64, RM_MIN)[0], 1u);
  EXPECT_EQ(ReduceAll<uint64_t>({{UINT64_MAX - 1}, {0}}, RM_UINT64, RM_AVERAGE, 2)[0], INT64_MAX);
}

TEST(Reduce, BoolsAreAnyAndAll) {
  const std::vector<std::vector<uint8_t>> inputs = {{0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}};
  const std::vector<uint8_t> any = {0, 1, 1, 1}, all = {0, 0, 0, 1};
  EXPECT_EQ(ReduceAll(inputs, RM_BOOL, RM_SUM), any);
  EXPECT_EQ(ReduceAll(inputs, RM_BOOL, RM_MAX), any);
  EXPECT_EQ(ReduceAll(inputs, RM_BOOL, RM_MIN), all);
  EXPECT_EQ(ReduceAll(inputs, RM_BOOL, RM_PRODUCT), all);
}

TEST(Reduce, NanWinsInMinAndMaxWhereverItStands) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  for (rm_op op : {RM_MIN, RM_MAX, RM_SUM}) {
    for (size_t place = 0; place < 3; ++place) {
      std::vector<std::vector<float>> inputs(3, std::vector<float>(40, 1));
      inputs[place].assign(40, nan);
      for (float value : ReduceAll(inputs, RM_FLOAT32, op)) ASSERT_TRUE(std::isnan(value));
    }
  }
}

TEST(Reduce, TheIdentityLeavesTheOtherOperandAsItIs) {
  for (int type = 0; type < element::kTypes; ++type) {
    for (rm_op op : {RM_SUM, RM_MIN, RM_MAX, RM_PRODUCT}) {
      const auto dtype = static_cast<rm_dtype>(type);
      const size_t bytes = element::Size(dtype);
      std::vector<uint8_t> identity(bytes), value(bytes), result(bytes);
      element::FillIdentity(identity.data(), 1, dtype, op);
      element::FillIdentity(value.data(), 1, dtype, RM_PRODUCT);  // one
      const void* sources[] = {value.data(), identity.data()};
      Reduce(result.data(), sources, 1, dtype, op);
      EXPECT_EQ(result, value) << element::Name(dtype) << " " << element::OpName(op);
    }
  }
}

double HalfValue(uint16_t bits) {
  int exponent = bits >> 10 & 31;
  double mantissa = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31)
    value = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  return bits & 0x8000 ? -value : value;
}

// Each of the 65,536 halves plus zero gives itself: both conversions are exact, whichever
// instructions make them.
TEST(Reduce, EveryHalfSurvivesTheWayThroughFloat) {
  std::vector<uint16_t> all(65536), zeros(65536, 0x8000);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (bool portable : {false, true}) {
    std::vector<uint16_t> out(65536);
    const void* sources[] = {all.data(), zeros.data()};
    if (portable) {
      kernels_base::kTable.types[RM_FLOAT16].reduce[0](out.data(), sources, 2, out.size());
    } else {
      Reduce(out.data(), sources, out.size(), RM_FLOAT16, RM_SUM);
    }
    for (size_t i = 0; i < all.size(); ++i) {
      double before = HalfValue(all[i]), after = HalfValue(out[i]);
      if (std::isnan(before)) {
        ASSERT_TRUE(std::isnan(after)) << i;
      } else {
        ASSERT_EQ(before, after) << i;
      }
    }
  }
}

TEST(Reduce, PortableAndFastHalfSumsAreTheSameBits) {
  std::vector<uint16_t> a(65536), b(65536);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint16_t>(i * 40503);
    b[i] = static_cast<uint16_t>(i * 30011 + 77);
  }
  for (rm_dtype dtype : {RM_FLOAT16, RM_BFLOAT16}) {
    std::vector<uint16_t> fast(a.size()), portable(a.size());
    const void* sources[] = {a.data(), b.data()};
    Reduce(fast.data(), sources, a.size(), dtype, RM_SUM);
    kernels_base::kTable.types[dtype].reduce[0](portable.data(), sources, 2, a.size());
    uint16_t infinity = dtype == RM_FLOAT16 ? 0x7c00 : 0x7f80;
    for (size_t i = 0; i < a.size(); ++i) {
      bool nan = (fast[i] & 0x7fff) > infinity && (portable[i] & 0x7fff) > infinity;
      ASSERT_TRUE(nan || fast[i] == portable[i]) << i;
    }
  }
}

// 2048 + 1 + 1 as halves: with rounding after each step the sum would stay at 2048.
TEST(Reduce, HalvesAreAddedUpAsFloatAndRoundedOnce) {
  std::vector<std::vector<uint16_t>> inputs = {{0x6800}, {0x3c00}, {0x3c00}};
  EXPECT_EQ(HalfValue(ReduceAll(inputs, RM_FLOAT16, RM_SUM)[0]), 2050);
}

// 40000 as fp16, whose sum is infinite, and bf16s near the greatest float.
TEST(Reduce, HalvesWhoseSumOverflowsHaveARightAverage) {
  const struct {
    rm_dtype dtype;
    uint16_t value;
  } cases[] = {{RM_FLOAT16, 0x78e2}, {RM_BFLOAT16, 0x7f00}};
  for (const auto& one : cases) {
    for (size_t sources : {2, 3, 4, 7}) {
      std::vector<std::vector<uint16_t>> inputs(sources, std::vector<uint16_t>(1500, one.value));
      const int divisor = static_cast<int>(sources);
      const auto fast = ReduceAll(inputs, one.dtype, RM_AVERAGE, divisor);
      std::vector<const void*> from;
      for (const auto& input : inputs) from.push_back(input.data());
      std::vector<uint16_t> portable(1500);
      kernels_base::kTable.types[one.dtype].average(portable.data(), from.data(), divisor, 1500,
                                                    divisor);
      EXPECT_EQ(fast, inputs[0]) << sources;
      EXPECT_EQ(portable, inputs[0]) << sources;
    }
  }
}

}  // namespace
}  // namespace ringmaster::algorithms
