#include "collectives/engine/inbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringmaster::engine {
namespace {

std::shared_ptr<Operation> Named(const std::string& name) {
  Request request;
  request.name = name;
  return std::make_shared<Operation>(std::move(request), nullptr, nullptr);
}

WorkerView ViewOf(uint64_t epoch) {
  WorkerView view;
  view.epoch = epoch;
  view.self = 0;
  return view;
}

TEST(InboxTest, ANameIsInFlightUntilItIsForgotten) {
  Inbox inbox;
  EXPECT_TRUE(inbox.Submit(Named("a")).ok());
  EXPECT_EQ(inbox.Submit(Named("a")).code(), RM_ERR_INVALID);
  EXPECT_TRUE(inbox.Submit(Named("b")).ok());
  EXPECT_EQ(inbox.Take().submitted.size(), 2u);
  EXPECT_EQ(inbox.Submit(Named("a")).code(), RM_ERR_INVALID);
  inbox.Forget(Request{.name = "a"});
  EXPECT_TRUE(inbox.Submit(Named("a")).ok());
}

TEST(InboxTest, RefusesForTheFirstReasonThatWasGiven) {
  Inbox inbox;
  EXPECT_TRUE(inbox.Refuse({RM_ERR_LEFT, "drained"}).empty());
  EXPECT_TRUE(inbox.Refuse({RM_ERR_SHUTDOWN, "shut down"}).empty());
  EXPECT_EQ(inbox.Submit(Named("a")).code(), RM_ERR_LEFT);
  EXPECT_TRUE(inbox.Take().submitted.empty());
}

TEST(InboxTest, WhatNobodyHasTakenIsGivenBackWhenItRefusesAndNotTakenLater) {
  for (const bool for_good : {false, true}) {
    Inbox inbox;
    const auto operation = Named("a");
    ASSERT_TRUE(inbox.Submit(operation).ok());
    const Submitted posted =
        for_good ? inbox.Refuse({RM_ERR_SHUTDOWN, "shut down"}) : inbox.Suspend("dropped");
    EXPECT_EQ(posted, Submitted{operation});
    inbox.Resume();
    EXPECT_TRUE(inbox.Take().submitted.empty());
    EXPECT_EQ(inbox.Submit(Named("a")).ok(), !for_good) << "its name is free";
  }
}

TEST(InboxTest, AStopVoidsTheViewsUpToItsEpoch) {
  Inbox inbox;
  inbox.PostView(ViewOf(4));
  inbox.PostStop(4);
  inbox.PostStop(3);
  inbox.PostView(ViewOf(4));
  Messages messages = inbox.Take();
  EXPECT_EQ(messages.stop, 4u);
  EXPECT_FALSE(messages.view);
  inbox.PostStop(4);
  inbox.PostView(ViewOf(5));
  messages = inbox.Take();
  ASSERT_TRUE(messages.view);
  EXPECT_EQ(messages.view->epoch, 5u);
}

TEST(InboxTest, TheNewestViewCountsAndBeingDroppedVoidsIt) {
  Inbox inbox;
  inbox.PostView(ViewOf(5));
  inbox.PostView(ViewOf(4));
  EXPECT_EQ(inbox.Take().view->epoch, 5u);
  inbox.PostView(ViewOf(6));
  inbox.PostDropped("why");
  const Messages messages = inbox.Take();
  EXPECT_FALSE(messages.view);
  EXPECT_TRUE(messages.dropped);
}

TEST(InboxTest, AViewWithoutThisWorkerIsHeardOfAlsoWhereANewerOneHasComeMeanwhile) {
  WorkerView without = ViewOf(5);
  without.self = -1;
  without.reason = "PodLost";
  for (bool stopped : {false, true}) {
    Inbox inbox;
    inbox.PostView(without);
    if (stopped) inbox.PostStop(5);
    inbox.PostView(ViewOf(6));
    const Messages messages = inbox.Take();
    ASSERT_TRUE(messages.dropped) << "it has no state that counts, and must not say so in view 6";
    EXPECT_EQ(*messages.dropped, "view 0.5 of the job (PodLost) goes on without this worker");
    ASSERT_TRUE(messages.view);
    EXPECT_EQ(messages.view->epoch, 6u);
  }
}

TEST(InboxTest, WaitEndsWithAMessageOrAtItsTime) {
  Inbox inbox;
  const Messages none = inbox.Wait(Inbox::Clock::now() + std::chrono::milliseconds(1));
  EXPECT_FALSE(none.close);
  std::thread poster([&] { inbox.PostClose(); });
  EXPECT_TRUE(inbox.Wait(std::nullopt).close);
  poster.join();
  EXPECT_FALSE(inbox.Take().close);  // told once
}

}  // namespace
}  // namespace ringmaster::engine
