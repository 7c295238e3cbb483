#include "collectives/engine/state_transfer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "collectives/engine/fake_communicator.h"

namespace ringmaster::engine {
namespace {

// A user that stands in step_end for as long as the test runs.
class StandingUser {
 public:
  explicit StandingUser(UserTasks* tasks)
      : tasks_(tasks), thread_([this] {
          tasks_->Serve([this] { return gone_.load(); }, UserTasks::Clock::time_point::max());
        }) {}
  ~StandingUser() {
    gone_ = true;
    tasks_->Notify();
    thread_.join();
  }

 private:
  UserTasks* const tasks_;
  std::atomic<bool> gone_{false};
  std::thread thread_;
};

// Runs transfers with a donor or a joiner that has no real peers.
class StateTransferTest : public ::testing::Test {
 protected:
  Status Donate() {
    FakeCommunicator donor(0, 2);
    StateTransfer transfer(&donor, &donor_state_, &tasks_, {0, true});
    const Status status = transfer.Run();
    donor_calls_ = donor.calls;
    saved_ = transfer.saved();
    return status;
  }

  UserTasks tasks_;
  StandingUser user_{&tasks_};
  StateRegistry donor_state_;
  std::vector<std::string> donor_calls_;
  Status saved_;
};

// Gives a joiner these messages as the results of the donor's broadcasts, in this order.
std::function<void(void*, size_t)> Script(std::vector<std::string> messages) {
  auto next = std::make_shared<size_t>(0);
  return [messages = std::move(messages), next](void* data, size_t bytes) {
    const std::string& message = messages.at((*next)++);
    ASSERT_EQ(bytes, message.size());
    std::memcpy(data, message.data(), bytes);
  };
}

std::string Bytes(uint64_t value, size_t bytes) {
  return std::string(reinterpret_cast<const char*>(&value), bytes);
}

// The messages of a donor whose state is one segment, "w".
std::vector<std::string> DonorSays(const std::string& weights) {
  const std::string manifest =
      Bytes(RM_OK, 4) + Bytes(0, 4) + Bytes(1, 4) + Bytes(1, 4) + "w" + Bytes(weights.size(), 8);
  return {Bytes(manifest.size(), 8), manifest, weights};
}

TEST_F(StateTransferTest, ADonorSendsItsManifestAndThenEachSegment) {
  std::string weights = "abcd", more = "efg";
  ASSERT_TRUE(donor_state_.Register("w", weights.data(), weights.size()).ok());
  ASSERT_TRUE(donor_state_.Register("x", more.data(), more.size()).ok());
  ASSERT_TRUE(Donate().ok());
  EXPECT_TRUE(saved_.ok());
  EXPECT_EQ(donor_calls_.size(), 4u);  // length, manifest, two segments
}

// An exception must not leave the engine's thread waiting, and with it the whole job.
TEST_F(StateTransferTest, WhatASaveThrowsIsItsResult) {
  const auto out_of_memory = [](void*, const void**, size_t*) -> int { throw std::bad_alloc(); };
  const auto a_number = [](void*, const void**, size_t*) -> int { throw 5; };
  const auto fails = [](void*, const void**, size_t*) -> int {
    throw std::runtime_error("the disk is full");
  };
  const auto load = [](void*, const void*, size_t) { return 0; };
  donor_state_.SetCallbacks(out_of_memory, load, nullptr);
  ASSERT_TRUE(Donate().ok());
  EXPECT_EQ(saved_.code(), RM_ERR_OUT_OF_MEMORY);
  donor_state_.SetCallbacks(a_number, load, nullptr);
  ASSERT_TRUE(Donate().ok());
  EXPECT_EQ(saved_.code(), RM_ERR_INTERNAL);
  donor_state_.SetCallbacks(fails, load, nullptr);
  ASSERT_TRUE(Donate().ok());
  EXPECT_EQ(saved_.code(), RM_ERR_INTERNAL);
  EXPECT_NE(saved_.message().find("the disk is full"), std::string::npos);
}

TEST_F(StateTransferTest, ADonorWithoutStateTellsThatToAll) {
  ASSERT_TRUE(Donate().ok());
  EXPECT_EQ(saved_.code(), RM_ERR_NO_STATE);
  EXPECT_EQ(donor_calls_.size(), 2u);
}

TEST_F(StateTransferTest, AJoinerLoadsWhatTheDonorHasSent) {
  std::string weights = "....";
  StateRegistry registry;
  ASSERT_TRUE(registry.Register("w", weights.data(), weights.size()).ok());
  FakeCommunicator joiner(1, 2);
  joiner.from_root = Script(DonorSays("abcd"));
  StateTransfer transfer(&joiner, &registry, &tasks_, {0, false});
  ASSERT_TRUE(transfer.Run().ok());
  EXPECT_TRUE(transfer.loaded().ok()) << transfer.loaded().message();
  EXPECT_EQ(weights, "abcd");
  EXPECT_TRUE(transfer.AwaitAll().ok());
}

TEST_F(StateTransferTest, AFaultInTheMiddleLeavesAJoinersMemoryAsItWas) {
  std::string weights = "....";
  StateRegistry registry;
  ASSERT_TRUE(registry.Register("w", weights.data(), weights.size()).ok());
  FakeCommunicator joiner(1, 2);
  joiner.from_root = Script(DonorSays("abcd"));
  joiner.fail_at = 2;
  StateTransfer transfer(&joiner, &registry, &tasks_, {0, false});
  EXPECT_EQ(transfer.Run().code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(weights, "....");
}

TEST_F(StateTransferTest, ARankWithStatePassesItOnAndLoadsNothing) {
  std::string weights = "....";
  StateRegistry registry;
  ASSERT_TRUE(registry.Register("w", weights.data(), weights.size()).ok());
  FakeCommunicator member(1, 2);
  member.from_root = Script(DonorSays("abcd"));
  StateTransfer transfer(&member, &registry, &tasks_, {0, true});
  ASSERT_TRUE(transfer.Run().ok());
  EXPECT_EQ(weights, "....");
}

TEST_F(StateTransferTest, AStoppedViewEndsTheWaitForTheUser) {
  std::string weights = "abcd";
  ASSERT_TRUE(donor_state_.Register("w", weights.data(), weights.size()).ok());
  tasks_.Interrupt(1);
  EXPECT_EQ(Donate().code(), RM_ERR_EPOCH_MOVED);
  EXPECT_TRUE(donor_calls_.empty());
}

}  // namespace
}  // namespace ringmaster::engine
