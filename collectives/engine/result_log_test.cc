#include "collectives/engine/result_log.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

Retained Result(uint64_t number, Kind kind, uint64_t bytes) {
  Retained result;
  result.response.number = number;
  result.response.requests.resize(1);
  result.response.batches = {1};
  result.parts.resize(1);
  result.response.requests[0].kind = kind;
  result.parts[0].bytes = bytes;
  return result;
}

TEST(ResultLogTest, NumbersRiseByOneAndAnAllreduceDropsWhatCameBefore) {
  ResultLog log;
  log.Append(Result(0, Kind::kBroadcast, 8));
  log.Append(Result(1, Kind::kAllgather, 8));
  EXPECT_EQ(log.Holdings().size(), 2u);
  log.Append(Result(2, Kind::kAllreduce, 8));
  EXPECT_EQ(log.next_number(), 3u);
  EXPECT_EQ(log.Find(1), nullptr);
  ASSERT_NE(log.Find(2), nullptr);
  EXPECT_EQ(log.Find(2)->response.number, 2u);
}

TEST(ResultLogTest, AnEmptyAllreduceProvesNothing) {
  ResultLog log;
  log.Append(Result(0, Kind::kBroadcast, 8));
  log.Append(Result(1, Kind::kAllreduce, 0));
  EXPECT_NE(log.Find(0), nullptr);
}

TEST(ResultLogTest, AHandedOverAllreduceProvesNothing) {
  ResultLog log;
  log.Append(Result(0, Kind::kBroadcast, 8));
  log.Keep(Result(1, Kind::kAllreduce, 8));
  EXPECT_NE(log.Find(0), nullptr);
  EXPECT_EQ(log.next_number(), 2u);
}

TEST(ResultLogTest, WhatIsPreparedCountsWhenItIsCommittedAndOnce) {
  ResultLog log;
  log.Append(Result(0, Kind::kBroadcast, 8));
  log.Prepare(Result(1, Kind::kAlltoall, 8));
  EXPECT_EQ(log.next_number(), 1u);
  EXPECT_EQ(log.Commit(2), nullptr) << "another operation";
  const Retained* result = log.Commit(1);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->response.number, 1u);
  EXPECT_EQ(log.next_number(), 2u);
  EXPECT_EQ(log.Commit(1), nullptr);
  EXPECT_TRUE(log.Holdings()[1].parts.empty()) << "nobody can be given it";
  log.Prepare(Result(2, Kind::kAlltoall, 8));
  log.Trim();
  EXPECT_EQ(log.Commit(2), nullptr) << "all go on without it";
}

TEST(ResultLogTest, TrimKeepsTheNumberAndRestartSetsIt) {
  ResultLog log;
  log.Append(Result(0, Kind::kBroadcast, 8));
  log.Trim();
  EXPECT_TRUE(log.Holdings().empty());
  EXPECT_EQ(log.next_number(), 1u);
  log.Append(Result(1, Kind::kBroadcast, 8));
  log.Restart(40);
  EXPECT_TRUE(log.Holdings().empty());
  EXPECT_EQ(log.next_number(), 40u);
}

}  // namespace
}  // namespace ringmaster::engine
