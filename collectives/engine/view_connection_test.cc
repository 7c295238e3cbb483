#include "collectives/engine/view_connection.h"

#include <gtest/gtest.h>

#include "collectives/engine/fake_communicator.h"
#include "collectives/engine/fake_listener.h"

namespace ringmaster::engine {
namespace {

using Heard = std::vector<std::string>;

class ViewConnectionTest : public ::testing::Test {
 protected:
  static WorkerView ViewOf(uint64_t epoch) {
    WorkerView view;
    view.epoch = epoch;
    view.self = 0;
    return view;
  }
  // Connects and activates a view.
  void Enter(uint64_t epoch) {
    ASSERT_TRUE(connection_.Connect(ViewOf(epoch)).ok());
    connection_.Activate();
  }

  HostCommunicator host_;
  FakeFactory factory_;
  FakeListener listener_;
  ViewConnection connection_{&host_, &factory_, &listener_};
};

TEST_F(ViewConnectionTest, AViewIsActiveWhenItIsSaidToBeAndUntilItIsLeft) {
  EXPECT_EQ(connection_.view().epoch, 0u);
  EXPECT_TRUE(connection_.Takes(1));
  ASSERT_TRUE(connection_.Connect(ViewOf(5)).ok());
  EXPECT_FALSE(connection_.active());
  ASSERT_NE(connection_.communicator(), nullptr);
  EXPECT_EQ(connection_.communicator()->epoch(), 5u);
  connection_.Activate();
  EXPECT_TRUE(connection_.active());
  connection_.Leave();
  EXPECT_FALSE(connection_.active());
  EXPECT_EQ(connection_.communicator(), nullptr);
  EXPECT_EQ(connection_.view().epoch, 5u);
}

TEST_F(ViewConnectionTest, ANewViewWaitsToBeActivatedThoughTheOneBeforeRan) {
  Enter(5);
  ASSERT_TRUE(connection_.Connect(ViewOf(6)).ok());
  EXPECT_FALSE(connection_.active());
}

TEST_F(ViewConnectionTest, OnlyViewsAreTakenThatAreNewerThanWhatHasComeAndWhatWasStopped) {
  Enter(5);
  EXPECT_FALSE(connection_.Takes(5));
  EXPECT_TRUE(connection_.Takes(6));
  EXPECT_TRUE(connection_.Stop(7));
  EXPECT_FALSE(connection_.Takes(7));
  EXPECT_TRUE(connection_.Takes(8));
  EXPECT_TRUE(connection_.Stop(6)) << "the view there is isn't newer";
  EXPECT_FALSE(connection_.Takes(7)) << "an older stop takes nothing back";
}

TEST_F(ViewConnectionTest, AStopOfAnOlderViewIsNoneOfTheOneThereIs) {
  Enter(5);
  EXPECT_FALSE(connection_.Stop(4));
  EXPECT_TRUE(connection_.active());
}

TEST_F(ViewConnectionTest, AViewThatGoesOnWithoutThisWorkerIsNotTakenAgain) {
  connection_.PassBy(5);
  connection_.Forgo();
  EXPECT_EQ(connection_.view().epoch, 5u);
  EXPECT_FALSE(connection_.Takes(5));
  EXPECT_TRUE(connection_.Takes(6));
}

TEST_F(ViewConnectionTest, ABrokenViewIsToldWithTheLinkThatBrokeFirst) {
  Enter(5);
  auto& fake = static_cast<FakeCommunicator&>(*connection_.communicator());
  factory_.newest.on_broken_link(2, "reset");
  EXPECT_TRUE(connection_.Break({RM_ERR_EPOCH_MOVED, "rank 2 is gone"}));
  EXPECT_TRUE(fake.aborted);
  EXPECT_FALSE(connection_.active());
  EXPECT_EQ(listener_.heard, Heard{"broken 5 2 rank 2 is gone"});
}

TEST_F(ViewConnectionTest, ALinkThatBrokeInOneViewIsNotNamedInTheNext) {
  Enter(5);
  factory_.newest.on_broken_link(2, "reset");
  Enter(6);
  EXPECT_TRUE(connection_.Break({RM_ERR_TIMEOUT, "late"}));
  EXPECT_EQ(listener_.heard, Heard{"broken 6 -1 late"});
}

TEST_F(ViewConnectionTest, AViewThatCouldNotBeConnectedIsToldToo) {
  factory_.fails = {RM_ERR_TIMEOUT, "rank 1 has not come"};
  const Status status = connection_.Connect(ViewOf(5));
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_TRUE(connection_.Break(status));
  EXPECT_EQ(listener_.heard, Heard{"broken 5 -1 rank 1 has not come"});
}

TEST_F(ViewConnectionTest, ThatAStoppedViewBreaksIsNoNews) {
  Enter(5);
  host_.Abort(5, "stopped");
  EXPECT_TRUE(connection_.Break({RM_ERR_EPOCH_MOVED, "stopped"}));
  EXPECT_EQ(listener_.heard, Heard{});
}

TEST_F(ViewConnectionTest, WhatAnotherViewDoesNotMendIsNotTold) {
  Enter(5);
  EXPECT_FALSE(connection_.Break({RM_ERR_OUT_OF_MEMORY, "no memory"}));
  EXPECT_FALSE(connection_.active());
  EXPECT_EQ(listener_.heard, Heard{});
}

TEST_F(ViewConnectionTest, ASuspectIsToldWithTheViewThatItIsIn) {
  Enter(5);
  const auto on_suspect = factory_.newest.on_suspect;
  Enter(6);
  on_suspect(1, "closed");
  EXPECT_EQ(listener_.heard, Heard{"suspect 5 1 closed"});
}

}  // namespace
}  // namespace ringmaster::engine
