#include "collectives/engine/agreed_request.h"

#include <gtest/gtest.h>

namespace ringmaster::engine {
namespace {

TEST(AgreedRequestTest, ASecondCallWaitsForTheAgreementThatTheFirstHasAskedFor) {
  Inbox inbox;
  AgreedRequest request(&inbox, kShutdownName, Kind::kShutdown);
  std::shared_ptr<Operation> first, second;
  ASSERT_TRUE(request.Ask(&first).ok());
  ASSERT_TRUE(request.Ask(&second).ok());
  EXPECT_EQ(first, second);
  EXPECT_EQ(inbox.Take().submitted.size(), 1u);
  first->Complete({});
  ASSERT_TRUE(request.Ask(&second).ok());
  EXPECT_EQ(first, second) << "it has come meanwhile";
}

TEST(AgreedRequestTest, WhatHasFailedIsAskedForOnceMore) {
  Inbox inbox;
  AgreedRequest request(&inbox, kShutdownName, Kind::kShutdown);
  std::shared_ptr<Operation> first, second;
  ASSERT_TRUE(request.Ask(&first).ok());
  inbox.Forget(Request{.name = kShutdownName});
  first->Complete({RM_ERR_DROPPED, "dropped"});
  ASSERT_TRUE(request.Ask(&second).ok());
  EXPECT_NE(first, second);
  EXPECT_FALSE(second->done());
}

TEST(AgreedRequestTest, WhatTheInboxRefusesIsNotWaitedFor) {
  Inbox inbox;
  EXPECT_TRUE(inbox.Refuse({RM_ERR_LEFT, "drained"}).empty());
  AgreedRequest request(&inbox, kShutdownName, Kind::kShutdown);
  std::shared_ptr<Operation> operation;
  EXPECT_EQ(request.Ask(&operation).code(), RM_ERR_LEFT);
  EXPECT_EQ(operation, nullptr);
}

}  // namespace
}  // namespace ringmaster::engine
