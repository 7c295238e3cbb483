#include "operator/cli/awaited_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace ringmaster::cli {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(AwaitedHostsTest, TheAddressAndTheSlotsAreHandedToWhoWaits) {
  AwaitedHosts awaited(2, seconds(60));
  const std::jthread finder([&] {
    awaited.SetAddress("10.0.0.1");
    awaited.SetSlots(1, {});
    awaited.SetSlots(3, {});
  });
  EXPECT_EQ(awaited.AwaitAddress({}).value(), "10.0.0.1");
  EXPECT_EQ(awaited.AwaitSlots({}).value(), 3);
}

TEST(AwaitedHostsTest, AScriptThatFailsWhenItIsAskedFirstEndsTheWait) {
  AwaitedHosts awaited(2, seconds(60));
  awaited.SetFirstError("hosts.sh: can't be run");
  const auto address = awaited.AwaitAddress({});
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, ExitCode::kUsage);
  EXPECT_EQ(address.error().message, "hosts.sh: can't be run");
}

TEST(AwaitedHostsTest, AfterItsPatienceTheWaitSaysWhatKeptTheHosts) {
  AwaitedHosts awaited(2, seconds(0));
  awaited.SetSlots(1, {{"b", "no route"}});
  const auto slots = awaited.AwaitSlots({});
  ASSERT_FALSE(slots);
  EXPECT_EQ(slots.error().code, ExitCode::kMachineLacks);
  EXPECT_THAT(slots.error().message,
              HasSubstr("-np 2: the hosts that --host-discovery-script names offered 1 slots"));
  EXPECT_THAT(slots.error().message, HasSubstr("\nhost b: no route"));
}

TEST(AwaitedHostsTest, AnInterruptEndsTheWait) {
  AwaitedHosts awaited(2, seconds(60));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(awaited.AwaitSlots(stop.get_token()).error().code, ExitCode::kInterrupted);
  EXPECT_EQ(awaited.AwaitAddress(stop.get_token()).error().code, ExitCode::kInterrupted);
}

}  // namespace
}  // namespace ringmaster::cli
