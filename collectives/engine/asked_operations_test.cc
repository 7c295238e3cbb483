#include "collectives/engine/asked_operations.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

class AskedOperationsTest : public ::testing::Test {
 protected:
  // Submits an operation as a user does, and takes it as the loop does.
  std::shared_ptr<Operation> Ask(const std::string& name, int32_t set = 0) {
    Request request;
    request.name = name;
    request.process_set = set;
    auto operation = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
    EXPECT_TRUE(inbox_.Submit(operation).ok());
    return operation;
  }
  bool Take() { return asked_.Take(inbox_.Take().submitted, OnlyTheWorld); }
  static Status OnlyTheWorld(int32_t set) {
    return set == 0 ? Status() : Status(RM_ERR_INVALID, "not in that set");
  }
  bool IsFree(const std::string& name) {
    Request request;
    request.name = name;
    return inbox_.Submit(std::make_shared<Operation>(std::move(request), nullptr, nullptr)).ok();
  }
  bool IsMetered() const {
    const auto now = WorkMeter::Clock::now();
    return work_.At(now + std::chrono::seconds(9)).waiting > work_.At(now).waiting;
  }

  Inbox inbox_;
  UserTasks users_;
  WorkMeter work_;
  AskedOperations asked_{&inbox_, &users_, &work_};
};

TEST_F(AskedOperationsTest, WhatIsPostedIsPendingUntilItIsTaken) {
  work_.Begin(WorkMeter::Clock::now());
  EXPECT_FALSE(Take());
  const auto operation = Ask("a");
  EXPECT_TRUE(Take());
  EXPECT_EQ(asked_.pending().Find("a"), operation);
  EXPECT_FALSE(operation->done());
  EXPECT_TRUE(IsMetered());
}

TEST_F(AskedOperationsTest, OfASetThatIsNotOursNothingIsTakenAndItsNameIsFree) {
  const auto operation = Ask("a", 3);
  EXPECT_FALSE(Take());
  EXPECT_EQ(operation->status().code(), RM_ERR_INVALID);
  EXPECT_TRUE(asked_.idle());
  EXPECT_TRUE(IsFree("a"));
}

TEST_F(AskedOperationsTest, WhatTheInboxRefusesByTheTimeItIsTakenEnds) {
  const auto operation = Ask("a");
  const Submitted taken = inbox_.Take().submitted;
  asked_.Drop("dropped");
  EXPECT_FALSE(asked_.Take(taken, OnlyTheWorld));
  EXPECT_EQ(operation->status().code(), RM_ERR_DROPPED);
  EXPECT_TRUE(asked_.idle());
}

TEST_F(AskedOperationsTest, WhenAllFailNobodyWaitsAnyMore) {
  work_.Begin(WorkMeter::Clock::now());
  const auto a = Ask("a");
  EXPECT_TRUE(Take());
  const auto b = Ask("b");
  asked_.End({RM_ERR_SHUTDOWN, "over"});
  EXPECT_EQ(a->status().code(), RM_ERR_SHUTDOWN);
  EXPECT_EQ(b->status().code(), RM_ERR_SHUTDOWN);
  EXPECT_TRUE(asked_.idle());
  EXPECT_FALSE(IsMetered());
}

TEST_F(AskedOperationsTest, NamesAreFreeBeforeTheirResultsAreGivenOut) {
  const auto operation = Ask("a");
  EXPECT_TRUE(Take());
  EXPECT_FALSE(IsFree("a"));
  asked_.FreeNames(Response::Of({operation->request}));
  EXPECT_FALSE(operation->done());
  EXPECT_TRUE(IsFree("a"));
}

TEST_F(AskedOperationsTest, WhatIsLeftOverOfARemovedSetFailsByName) {
  const auto operation = Ask("a");
  EXPECT_TRUE(Take());
  asked_.FailLeftOver({operation});
  EXPECT_EQ(operation->status().message(), "'a': its process set has been removed");
  EXPECT_TRUE(IsFree("a"));
}

}  // namespace
}  // namespace ringmaster::engine
