#include "collectives/engine/host_communicator.h"

#include <gtest/gtest.h>

#include <thread>

#include "collectives/engine/fake_communicator.h"

namespace ringmaster::engine {
namespace {

CommunicatorOptions OptionsOf(uint64_t epoch) {
  CommunicatorOptions options;
  options.epoch = epoch;
  return options;
}

TEST(HostCommunicatorTest, AnAbortEndsTheViewUpToItsEpochAndNoNewerOne) {
  FakeFactory factory;
  HostCommunicator host;
  ASSERT_TRUE(host.Connect(&factory, OptionsOf(5)).ok());
  const auto& fake = static_cast<FakeCommunicator&>(*host.get());
  host.Abort(4, "an older view");
  EXPECT_FALSE(fake.aborted);
  host.Abort(5, "stopped");
  EXPECT_TRUE(fake.aborted);
  ASSERT_TRUE(host.Connect(&factory, OptionsOf(6)).ok());
  EXPECT_EQ(host.get()->epoch(), 6u);
  host.Drop();
  EXPECT_EQ(host.get(), nullptr);
}

TEST(HostCommunicatorTest, AViewThatWasAbortedBeforeIsNotConnected) {
  FakeFactory factory;
  HostCommunicator host;
  host.Abort(5, "stopped");
  EXPECT_EQ(host.Connect(&factory, OptionsOf(5)).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(factory.created, 0);
  EXPECT_EQ(host.get(), nullptr);
}

TEST(HostCommunicatorTest, AnAbortEndsTheConnecting) {
  FakeFactory factory;
  factory.hang = true;
  HostCommunicator host;
  std::thread stopper([&] {
    while (!factory.hangs) std::this_thread::yield();
    EXPECT_EQ(host.AbortCurrent("dropped"), 5u);
  });
  EXPECT_EQ(host.Connect(&factory, OptionsOf(5)).code(), RM_ERR_EPOCH_MOVED);
  stopper.join();
}

TEST(HostCommunicatorTest, AnAbortThatComesWhenItIsConnectedStillCounts) {
  FakeFactory factory;
  HostCommunicator host;
  factory.before_return = [&] { host.Abort(5, "stopped"); };
  EXPECT_EQ(host.Connect(&factory, OptionsOf(5)).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(host.get(), nullptr);
}

}  // namespace
}  // namespace ringmaster::engine
