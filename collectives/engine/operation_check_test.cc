#include "collectives/engine/operation_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace ringmaster::engine {
namespace {

// There are three ranks; the first two are in set 1, the last two in set 2.
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

TEST_F(OperationCheckTest, ScalesThatDifferInTheirLastBitAreAMismatch) {
  for (double Request::*scale : {&Request::prescale, &Request::postscale}) {
    Request one = Named("x"), other = Named("x");
    one.*scale = 0.1;
    other.*scale = std::nextafter(0.1, 1.0);
    EXPECT_TRUE(CheckOf({{0, one}, {1, one}}).ok());
    EXPECT_EQ(CheckOf({{0, one}, {1, other}}).code(), RM_ERR_MISMATCH);
    one.*scale = 0x1p-24;
    other.*scale = 0x1p-23;
    EXPECT_EQ(CheckOf({{0, one}, {1, other}}).code(), RM_ERR_MISMATCH);
  }
}

TEST_F(OperationCheckTest, ScalesAreShownInTheirShortestForm) {
  Request one = Named("x"), other = Named("x");
  one.prescale = 0.1;
  other.prescale = 2;
  EXPECT_EQ(CheckOf({{0, one}, {1, other}}).message(),
            "tensor 'x' differs between ranks: prescale is 0.1 on rank 0 and 2 on rank 1");
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
  // Rank 1 is in both sets. It has asked in set 1 like rank 0, so that operation is complete.
  EXPECT_EQ(describe({{0, Named("x", 1)}, {1, Named("x", 1)}}, {{2, Named("x", 2)}}), "");
  // Rank 0 waits for rank 1 in set 1, and rank 1 waits for rank 0 in the world.
  EXPECT_EQ(describe({{0, Named("x", 1)}}, {{1, Named("x")}, {2, Named("x")}}),
            "tensor 'x' differs between ranks: process set is 1 on rank 0 and 0 on rank 1");
  // Rank 2 has not asked yet.
  EXPECT_EQ(describe({{0, Named("x", 1)}}, {{1, Named("x")}}), "");
  joined_.Hear(2);
  EXPECT_NE(describe({{0, Named("x", 1)}}, {{1, Named("x")}}), "");
  EXPECT_EQ(describe({{0, Named("x", 1)}}, {{1, Named("y")}}), "");
}

}  // namespace
}  // namespace ringmaster::engine
