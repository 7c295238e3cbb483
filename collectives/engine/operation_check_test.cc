#include "collectives/engine/operation_check.h"

#include <gtest/gtest.h>

#include <functional>

namespace ringmaster::engine {
namespace {

// Three ranks; set 1 is the first two, set 2 the last two.
class OperationCheckTest : public ::testing::Test {
 protected:
  OperationCheckTest() {
    sets_.Add({"a", "b"});
    sets_.Add({"b", "c"});
    ranks_.Reset({"a", "b", "c"});
  }
  static Request Named(const std::string& name, int32_t set = 0) {
    Request request;
    request.name = name;
    request.kind = Kind::kAllreduce;
    request.process_set = set;
    return request;
  }
  static Request BroadcastFrom(const std::string& root, int32_t set = 0) {
    Request request = Named("x", set);
    request.kind = Kind::kBroadcast;
    request.root = root;
    return request;
  }
  Status CheckOf(const std::map<int, Request>& by_rank) {
    return CheckOperation(by_rank, sets_, &ranks_);
  }

  SetTable sets_;
  ViewRanks ranks_{&sets_};
  JoinedRanks joined_;
};

TEST_F(OperationCheckTest, WhatAllAskForAlikeCanRun) {
  EXPECT_TRUE(CheckOf({{0, Named("x")}, {1, Named("x")}, {2, Named("x")}}).ok());
}

TEST_F(OperationCheckTest, WhatDiffersIsAMismatch) {
  Request other = Named("x");
  other.count = 7;
  EXPECT_EQ(CheckOf({{0, Named("x")}, {1, other}}).code(), RM_ERR_MISMATCH);
}

TEST_F(OperationCheckTest, TheWordsSayWhoseProblemItIs) {
  Request bad = Named("x");
  bad.problem = "splits don't sum to rows";
  const Status status = CheckOf({{0, Named("x")}, {2, bad}});
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_EQ(status.message(), "tensor 'x': splits don't sum to rows on rank 2");
}

TEST_F(OperationCheckTest, ARootMustLiveBeInTheSetAndNotHaveJoined) {
  const auto from = [&](const std::string& root, int32_t set = 0) {
    return CheckOf({{0, BroadcastFrom(root, set)}, {1, BroadcastFrom(root, set)}});
  };
  EXPECT_TRUE(from("b").ok());
  EXPECT_EQ(from("dead").code(), RM_ERR_ROOT_LOST);
  EXPECT_EQ(from("c", 1).message(), "broadcast 'x': its root, c, is not in process set 1");
  EXPECT_EQ(from("c").message(), "broadcast 'x': its root, c, has joined");
}

TEST_F(OperationCheckTest, OnlyASetThatThereIsCanBeRemoved) {
  Request removal = Named(kRemoveSetName);
  removal.kind = Kind::kRemoveSet;
  removal.removed_set = 1;
  EXPECT_TRUE(CheckOf({{0, removal}}).ok());
  removal.removed_set = 9;
  EXPECT_EQ(CheckOf({{0, removal}}).code(), RM_ERR_INVALID);
}

TEST_F(OperationCheckTest, JoinsMayDifferInWhenTheyWereAskedFor) {
  Request join = Named(kJoinName), later = join;
  join.kind = later.kind = Kind::kJoin;
  later.count = 5;
  EXPECT_TRUE(CheckOf({{0, join}, {1, later}}).ok());
}

TEST_F(OperationCheckTest, TwoSetsThatWaitForEachOtherAreRivals) {
  const auto describe = [&](const std::map<int, Request>& one,
                            const std::map<int, Request>& other) {
    return DescribeRivals(one, other, joined_, &ranks_);
  };
  // Rank 1 is in both and has asked in the first: ranks 0 and 2 have asked, too, so nobody is left.
  EXPECT_EQ(describe({{0, Named("x", 1)}, {1, Named("x", 1)}}, {{2, Named("x", 2)}}), "");
  // Over the world, rank 0 waits for rank 1 in the one set, rank 1 for rank 0 in the world.
  EXPECT_EQ(describe({{0, Named("x", 1)}}, {{1, Named("x")}, {2, Named("x")}}),
            "tensor 'x' differs between ranks: process set is 1 on rank 0 and 0 on rank 1");
  // Rank 2 has yet to ask for it.
  EXPECT_EQ(describe({{0, Named("x", 1)}}, {{1, Named("x")}}), "");
  joined_.Hear(2);
  EXPECT_NE(describe({{0, Named("x", 1)}}, {{1, Named("x")}}), "");
  EXPECT_EQ(describe({{0, Named("x", 1)}}, {{1, Named("y")}}), "");
}

}  // namespace
}  // namespace ringmaster::engine
