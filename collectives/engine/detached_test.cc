#include "collectives/engine/detached.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringmaster::engine {
namespace {

TEST(DetachedTest, AnAllreduceIsTheOwnInputScaled) {
  std::vector<float> in{1, 2}, out(2);
  Operation operation({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, 0, 2, 0.5, 4.0}, in.data(),
                      out.data());
  CompleteAlone(&operation);
  ASSERT_TRUE(operation.status().ok());
  EXPECT_EQ(out, (std::vector<float>{2, 4}));
}

TEST(DetachedTest, AnAllgatherIsTheOwnRows) {
  const std::vector<int32_t> in{1, 2, 3, 4};
  Operation operation({"g", Kind::kAllgather, RM_INT32, RM_SUM, 0, 2, 1, 1}, in.data(), nullptr, 2);
  CompleteAlone(&operation);
  ASSERT_TRUE(operation.status().ok());
  EXPECT_EQ(operation.rows_by_rank, std::vector<size_t>{2});
  const auto* got = reinterpret_cast<const int32_t*>(operation.gathered->data());
  EXPECT_EQ(std::vector<int32_t>(got, got + 4), in);
}

}  // namespace
}  // namespace ringmaster::engine
