#include "collectives/engine/shutdown_request.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

TEST(ShutdownRequestTest, ASecondCallWaitsForTheAgreementThatTheFirstHasAskedFor) {
  Inbox inbox;
  ShutdownRequest request(&inbox);
  std::shared_ptr<Operation> first, second;
  ASSERT_TRUE(request.Ask(&first).ok());
  ASSERT_TRUE(request.Ask(&second).ok());
  EXPECT_EQ(first, second);
  EXPECT_EQ(inbox.Take().submitted.size(), 1u);
  first->Complete({});
  ASSERT_TRUE(request.Ask(&second).ok());
  EXPECT_EQ(first, second) << "it has come meanwhile";
}

TEST(ShutdownRequestTest, WhatHasFailedIsAskedForOnceMore) {
  Inbox inbox;
  ShutdownRequest request(&inbox);
  std::shared_ptr<Operation> first, second;
  ASSERT_TRUE(request.Ask(&first).ok());
  inbox.Forget(Request{.name = kShutdownName});
  first->Complete({RM_ERR_DROPPED, "dropped"});
  ASSERT_TRUE(request.Ask(&second).ok());
  EXPECT_NE(first, second);
  EXPECT_FALSE(second->done());
}

TEST(ShutdownRequestTest, WhatTheInboxRefusesIsNotWaitedFor) {
  Inbox inbox;
  EXPECT_TRUE(inbox.Refuse({RM_ERR_LEFT, "drained"}).empty());
  ShutdownRequest request(&inbox);
  std::shared_ptr<Operation> operation;
  EXPECT_EQ(request.Ask(&operation).code(), RM_ERR_LEFT);
  EXPECT_EQ(operation, nullptr);
}

}  // namespace
}  // namespace ringmaster::engine
