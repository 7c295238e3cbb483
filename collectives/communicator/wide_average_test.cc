#include "collectives/communicator/wide_average.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "collectives/element/element.h"

namespace ringmaster::communicator {
namespace {

TEST(WideAverageTest, IsForAveragesOfTypesWhoseSumMayOverflow) {
  EXPECT_TRUE(WideAverage::Needed(RM_INT8, RM_AVERAGE, 2));
  EXPECT_TRUE(WideAverage::Needed(RM_BFLOAT16, RM_AVERAGE, 2));
  EXPECT_FALSE(WideAverage::Needed(RM_INT8, RM_SUM, 2));
  EXPECT_FALSE(WideAverage::Needed(RM_INT8, RM_AVERAGE, 1));
  EXPECT_FALSE(WideAverage::Needed(RM_FLOAT32, RM_AVERAGE, 2));
}

// Two ranks give the same elements, so the average is these elements.
TEST(WideAverageTest, IntegersThatWouldOverflowComeBackAsTheyWere) {
  const std::vector<int8_t> in = {100, -128, 127};
  std::vector<int8_t> out(3);
  WideAverage wide(RM_INT8, 2);
  ASSERT_TRUE(wide.Take(in.data(), in.size()).ok());
  EXPECT_EQ(wide.op(), RM_AVERAGE);
  ASSERT_EQ(wide.dtype(), RM_INT32);
  auto* sums = reinterpret_cast<int32_t*>(wide.taken());
  for (size_t i = 0; i < in.size(); ++i) {
    sums[i] += sums[i];
    EXPECT_TRUE(sums[i] < INT8_MIN || sums[i] > INT8_MAX) << "the sum is to overflow";
    sums[i] /= 2;
  }
  wide.Give(wide.taken(), out.data(), out.size());
  EXPECT_EQ(out, in);
}

TEST(WideAverageTest, Bf16IsDividedFirstAndThenSummed) {
  const std::vector<uint16_t> in = {0x7f00};  // near the greatest float, so twice of it is infinite
  std::vector<uint16_t> out(1);
  WideAverage wide(RM_BFLOAT16, 2);
  ASSERT_TRUE(wide.Take(in.data(), 1).ok());
  EXPECT_EQ(wide.op(), RM_SUM);
  ASSERT_EQ(wide.dtype(), RM_FLOAT32);
  auto* sum = reinterpret_cast<float*>(wide.taken());
  *sum += *sum;
  wide.Give(wide.taken(), out.data(), 1);
  EXPECT_EQ(out, in);
}

TEST(WideAverageTest, TheRoomBesideIsNotWhereTheElementsAre) {
  const std::vector<int8_t> in = {1, 2, 3};
  WideAverage wide(RM_INT8, 2);
  ASSERT_TRUE(wide.Take(in.data(), 3, 2).ok());
  EXPECT_EQ(wide.beside(), wide.taken() + 3 * element::Size(wide.dtype()));
}

}  // namespace
}  // namespace ringmaster::communicator
