#include "collectives/communicator/arguments.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster::communicator {
namespace {

constexpr RankAndSize kSecondOfThree{1, 3};

std::string Words(const Status& status) {
  return status.ok() ? "" : status.code() == RM_ERR_INVALID ? status.message() : "another code";
}

TEST(ArgumentsTest, AReductionHasATypeAnOperationAndASizeThatThereAre) {
  float x = 0;
  const auto words = [&](size_t count, int dtype, int op) {
    return Words(
        CheckAllreduce(&x, &x, count, static_cast<rm_dtype>(dtype), static_cast<rm_op>(op)));
  };
  EXPECT_EQ(words(1, RM_FLOAT32, RM_SUM), "");
  EXPECT_NE(words(1, 99, RM_SUM).find("dtype 99 is unknown"), std::string::npos);
  EXPECT_EQ(words(1, RM_FLOAT32, 5), "op 5 is unknown: 0 to 4 are known");
  EXPECT_EQ(words(1, RM_BOOL, RM_AVERAGE), "bool has no average");
  EXPECT_EQ(words(SIZE_MAX / 8, RM_FLOAT32, RM_SUM),
            "count " + std::to_string(SIZE_MAX / 8) + " is too large");
}

TEST(ArgumentsTest, MemoryIsNeededWhereThereIsSomethingToReadOrWrite) {
  char x = 0;
  const std::vector<size_t> none(3, 0), others{4, 0, 4}, own{0, 4, 0};
  EXPECT_TRUE(CheckAllreduce(nullptr, nullptr, 0, RM_INT32, RM_SUM).ok());
  EXPECT_EQ(Words(CheckAllreduce(&x, nullptr, 1, RM_INT32, RM_SUM)), "in and out must not be null");

  EXPECT_TRUE(CheckAllgatherv(kSecondOfThree, nullptr, nullptr, none).ok());
  EXPECT_TRUE(CheckAllgatherv(kSecondOfThree, nullptr, &x, others).ok());
  EXPECT_FALSE(CheckAllgatherv(kSecondOfThree, &x, nullptr, others).ok());
  EXPECT_FALSE(CheckAllgatherv(kSecondOfThree, nullptr, &x, own).ok());

  EXPECT_TRUE(CheckBroadcast(kSecondOfThree, nullptr, 0, 2).ok());
  EXPECT_EQ(Words(CheckBroadcast(kSecondOfThree, nullptr, 1, 2)), "data must not be null");

  EXPECT_TRUE(CheckReduceScatter(kSecondOfThree, &x, nullptr, others, RM_INT32, RM_SUM).ok());
  EXPECT_FALSE(CheckReduceScatter(kSecondOfThree, &x, nullptr, own, RM_INT32, RM_SUM).ok());
  EXPECT_FALSE(CheckReduceScatter(kSecondOfThree, nullptr, &x, others, RM_INT32, RM_SUM).ok());
}

TEST(ArgumentsTest, OfAnAlltoallTheOwnRowIsReadAndTheOwnColumnWritten) {
  char x = 0;
  std::vector<size_t> bytes(9, 0);
  bytes[0 * 3 + 2] = 8;  // a block between two other ranks
  EXPECT_TRUE(CheckAlltoallv(kSecondOfThree, nullptr, nullptr, bytes).ok());
  bytes[1 * 3 + 0] = 8;
  EXPECT_FALSE(CheckAlltoallv(kSecondOfThree, nullptr, &x, bytes).ok());
  EXPECT_TRUE(CheckAlltoallv(kSecondOfThree, &x, nullptr, bytes).ok());
  bytes[2 * 3 + 1] = 8;
  EXPECT_FALSE(CheckAlltoallv(kSecondOfThree, &x, nullptr, bytes).ok());
}

TEST(ArgumentsTest, ThereIsAnEntryForEachRank) {
  char x = 0;
  const std::vector<size_t> two(2, 1), three(3, 1);
  EXPECT_EQ(Words(CheckAllgatherv(kSecondOfThree, &x, &x, two)),
            "bytes_by_rank has 2 entries, the view has 3 ranks");
  EXPECT_EQ(Words(CheckReduceScatter(kSecondOfThree, &x, &x, two, RM_INT8, RM_SUM)),
            "counts has 2 entries, the view has 3 ranks");
  EXPECT_EQ(Words(CheckAlltoallv(kSecondOfThree, &x, &x, three)),
            "bytes has 3 entries, the view has 3 ranks");
}

TEST(ArgumentsTest, ARootIsARankOfTheView) {
  EXPECT_EQ(Words(CheckBroadcast(kSecondOfThree, nullptr, 0, 3)),
            "root 3 is no rank: the view has 0 to 2");
  EXPECT_FALSE(CheckBroadcast(kSecondOfThree, nullptr, 0, -1).ok());
}

TEST(ArgumentsTest, ASubsetIsOfAViewAscendingAndHasTheOwnRank) {
  const auto ok = [](std::vector<int> ranks, bool is_subset = false) {
    return CheckSubset(kSecondOfThree, is_subset, ranks, 0).ok();
  };
  EXPECT_TRUE(ok({0, 1}));
  EXPECT_TRUE(ok({1}));
  EXPECT_FALSE(ok({}));
  EXPECT_FALSE(ok({1, 0}));
  EXPECT_FALSE(ok({1, 1}));
  EXPECT_FALSE(ok({0, 2}));
  EXPECT_FALSE(ok({1, 3}));
  EXPECT_FALSE(ok({-1, 1}));
  EXPECT_FALSE(ok({0, 1}, /*is_subset=*/true));
}

TEST(ArgumentsTest, ASubsetHasAChannelThatThereIs) {
  const auto check = [](int channel) {
    return CheckSubset(kSecondOfThree, false, std::vector<int>{0, 1}, channel);
  };
  EXPECT_TRUE(check(0).ok());
  EXPECT_TRUE(check(kSubsetChannels).ok());
  EXPECT_EQ(Words(check(4)), "channel 4 of a subset is none: 0 to 3 are");
  EXPECT_FALSE(check(-1).ok());
}

TEST(ArgumentsTest, OnlyAViewOfOneRankNeedsNoEndpoint) {
  CommunicatorOptions options;
  options.peers.resize(1);
  EXPECT_TRUE(CheckView(nullptr, options).ok());
  options.peers.resize(2);
  EXPECT_EQ(Words(CheckView(nullptr, options)), "a view of 2 ranks needs an endpoint");
  options.rank = 2;
  EXPECT_EQ(Words(CheckView(nullptr, options)), "rank 2 is not among 2 peers");
}

}  // namespace
}  // namespace ringmaster::communicator
