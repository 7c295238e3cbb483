// A rank that is alone in its view connects to itself; the fake NCCL says whether it gets through.
#include "collectives/nccl/connector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/nccl/fake/fake_gpu.h"

namespace ringmaster::nccl {
namespace {

using testing::HasSubstr;

constexpr std::chrono::milliseconds kShort{5}, kLong{60'000};

class ConnectorTest : public testing::Test {
 protected:
  void SetUp() override {
    process_.comes_to_connect = [this] { return network_works_; };
    CommunicatorOptions options;
    options.epoch = 1;
    options.peers.resize(1);
    ASSERT_TRUE(Communicator::Create(nullptr, options, &host_).ok());
    view_.Install(1);
  }
  void TearDown() override {
    EXPECT_TRUE(cluster_.misuse().empty()) << testing::PrintToString(cluster_.misuse());
  }

  // Ranks that aren't connected yet, as at the beginning of each view.
  RankGroup Ranks(bool with_nccl = true) {
    RankGroup ranks;
    ranks.host = host_.get();
    ranks.group =
        std::make_unique<NcclGroup>(process_.gpu(with_nccl), WaitLimits{.connect = patience_});
    return ranks;
  }
  Status ConnectInANewView() {
    RankGroup ranks = Ranks();
    const Status status = connector_.Connect(&ranks, 0);
    if (!status.ok()) return status;
    groups_.push_back(std::move(ranks));
    return status;
  }

  bool network_works_ = true;
  std::chrono::milliseconds patience_ = kLong;
  FakeCluster cluster_;
  FakeProcess process_{&cluster_};
  std::unique_ptr<Communicator> host_;
  std::vector<RankGroup> groups_;
  ViewEnd view_;
  Connector connector_{&view_, false};
};

TEST_F(ConnectorTest, WhatFailsInTwoViewsOneAfterTheOtherGoesThroughTheHostAfterwards) {
  network_works_ = false;
  patience_ = kShort;
  for (int view = 0; view < 2; ++view) {
    const Status status = ConnectInANewView();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.code(), RM_ERR_INTERNAL) << "another view may help";
  }
  testing::internal::CaptureStderr();
  for (int view = 0; view < 2; ++view) {
    EXPECT_TRUE(ConnectInANewView().ok());
    EXPECT_EQ(groups_.back().group->link(), nullptr);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster: tensors on GPUs go through the host's memory: rank 0 had no NCCL "
            "communicator in 2 views one after the other; here the last reason was NCCL: a "
            "communicator of 1 ranks was not done after 5 ms\n")
      << "said once";
}

TEST_F(ConnectorTest, WhatHasFailedIsTriedAgainWithOtherMembers) {
  connector_.Install({"a", "b"});
  network_works_ = false;
  patience_ = kShort;
  for (int view = 0; view < 2; ++view) EXPECT_FALSE(ConnectInANewView().ok());
  network_works_ = true;
  patience_ = kLong;
  connector_.Install({"b", "a"});
  EXPECT_TRUE(ConnectInANewView().ok());
  EXPECT_EQ(groups_.back().group->link(), nullptr) << "the same members";
  connector_.Install({"a"});
  EXPECT_TRUE(ConnectInANewView().ok());
  EXPECT_NE(groups_.back().group->link(), nullptr);
}

TEST_F(ConnectorTest, AJobThatNeedsNcclEndsWithTheReason) {
  network_works_ = false;
  patience_ = kShort;
  Connector strict(&view_, /*needs_nccl=*/true);
  for (int view = 0; view < 3; ++view) {
    RankGroup ranks = Ranks();
    const Status status = strict.Connect(&ranks, 0);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code() == RM_ERR_INTERNAL, view == 2);
    EXPECT_THAT(status.message(), HasSubstr("was not done after 5 ms"));
  }
}

TEST_F(ConnectorTest, AViewThatConnectsBeginsTheCountAnew) {
  for (int view = 0; view < 6; ++view) {
    network_works_ = view % 2 == 1;
    patience_ = network_works_ ? kLong : kShort;
    EXPECT_EQ(ConnectInANewView().ok(), network_works_);
    if (!network_works_) continue;
    EXPECT_NE(groups_.back().group->link(), nullptr);
  }
}

TEST_F(ConnectorTest, AConnectThatTheEndOfItsViewEndsIsNoFailureOfTheNetwork) {
  network_works_ = false;
  view_.Abort(1);
  for (int view = 0; view < 4; ++view) EXPECT_EQ(ConnectInANewView().code(), RM_ERR_EPOCH_MOVED);
}

TEST_F(ConnectorTest, RanksThatAreConnectedAreLeftAsTheyAre) {
  RankGroup ranks = Ranks();
  ASSERT_TRUE(connector_.Connect(&ranks, 0).ok());
  const NcclLink* const link = ranks.group->link();
  EXPECT_NE(link, nullptr);
  network_works_ = false;
  EXPECT_TRUE(connector_.Connect(&ranks, 0).ok());
  EXPECT_EQ(ranks.group->link(), link);
  EXPECT_EQ(cluster_.made()["init"], 1);
}

TEST_F(ConnectorTest, WhatNcclSaysOfItsLastErrorIsTold) {
  RankGroup ranks = Ranks();
  ASSERT_TRUE(connector_.Connect(&ranks, 0).ok());
  EXPECT_FALSE(ranks.group->link()->Trouble().has_value());
  process_.FailCommunicators();
  const auto trouble = ranks.group->link()->Trouble();
  ASSERT_TRUE(trouble.has_value());
  EXPECT_THAT(trouble->message(), HasSubstr("fake result 6 (a peer has closed a connection)"));
}

TEST_F(ConnectorTest, WhyNcclIsNotUsedIsToldOnce) {
  testing::internal::CaptureStderr();
  for (int view = 0; view < 2; ++view) {
    RankGroup ranks = Ranks(/*with_nccl=*/false);
    EXPECT_TRUE(connector_.Connect(&ranks, 0).ok());
    EXPECT_EQ(ranks.group->link(), nullptr);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster: tensors on GPUs go through the host's memory: rank 0 has no NCCL\n");
}

}  // namespace
}  // namespace ringmaster::nccl
