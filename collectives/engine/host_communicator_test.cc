#include "collectives/engine/host_communicator.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "collectives/engine/fake_communicator.h"

namespace ringmaster::engine {
namespace {

// Makes communicators at once, or waits in Create() until it is stopped.
class FakeFactory : public CommunicatorFactory {
 public:
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override {
    ++created;
    if (before_return) before_return();
    if (hang) {
      std::mutex mu;
      std::condition_variable_any stopped;
      std::unique_lock lock(mu);
      hangs = true;
      stopped.wait(lock, options.stop, [] { return false; });
      return {RM_ERR_EPOCH_MOVED, "stopped"};
    }
    *out = std::make_unique<FakeCommunicator>(0, 1, options.epoch);
    return {};
  }
  std::atomic<int> created{0};
  std::atomic<bool> hangs{false};
  bool hang = false;
  std::function<void()> before_return;
};

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
