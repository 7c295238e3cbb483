// What processes find in their environment, and the ports that are kept for them.
#include "sidecar/launcher/world.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "sidecar/launcher/reserved_port.h"

namespace ringmaster::launcher {
namespace {

using nlohmann::json;
using ::testing::Contains;

// Two pods whose workers' ranks are mixed, as after a change.
json View() {
  const auto rank = [](int pod, int slot, const char* tcp) {
    return json{{"pod", pod}, {"slot", slot}, {"incarnation", 1}, {"tcp", tcp}};
  };
  return {
      {"epoch", (uint64_t{1} << 40) + 7},
      {"reason", "PodLost"},
      {"train", true},
      {"ranks", {rank(1, 1, "10.0.0.2:50"), rank(0, 0, "10.0.0.1:51"), rank(1, 0, "10.0.0.2:52")}}};
}

TEST(WorldTest, ProcessesFindTheRanksOfTheirView) {
  const auto world = WorldOf(View(), 2);
  ASSERT_TRUE(world);
  const auto environment = EnvironmentOf(*world, "job-uid", 3);
  for (const char* entry :
       {"RANK=2", "WORLD_SIZE=3", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "GROUP_RANK=0",
        "GROUP_WORLD_SIZE=2", "MASTER_ADDR=10.0.0.2", "MASTER_PORT=50", "HOROVOD_RANK=2",
        "HOROVOD_LOCAL_RANK=1", "HOROVOD_CROSS_SIZE=2", "TORCHELASTIC_RESTART_COUNT=3",
        "RINGMASTER_VIEW=1.7", "RINGMASTER_SOCKET=", "TORCHELASTIC_RUN_ID=job-uid"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
  EXPECT_THAT(
      environment,
      Contains(R"(TF_CONFIG={"cluster":{"worker":["10.0.0.2:50","10.0.0.1:51","10.0.0.2:52"]},)"
               R"("task":{"index":2,"type":"worker"}})"));
  const auto other = WorldOf(View(), 1);
  EXPECT_THAT(EnvironmentOf(*other, "j", 0), Contains("GROUP_RANK=1"));
  EXPECT_THAT(EnvironmentOf(*other, "j", 0), Contains("LOCAL_RANK=0"));
}

TEST(WorldTest, AnAddressOfSixthVersionLosesItsBrackets) {
  json view = View();
  view["ranks"][0]["tcp"] = "[fd00::2]:50";
  const auto environment = EnvironmentOf(*WorldOf(view, 0), "j", 0);
  EXPECT_THAT(environment, Contains("MASTER_ADDR=fd00::2"));
  EXPECT_THAT(environment, Contains("MASTER_PORT=50"));
}

TEST(WorldTest, WhoIsNotInTheViewHasNoWorld) {
  EXPECT_FALSE(WorldOf(View(), -1));
  EXPECT_FALSE(WorldOf(View(), 3));
  EXPECT_FALSE(WorldOf(json("no view"), 0));
}

TEST(ReservedPortTest, IsKeptFromOthersAndFreeForAServer) {
  const ReservedPort port("127.0.0.1");
  ASSERT_NE(port.address(), "") << port.error();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(port.address().substr(10))));
  const int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_NE(bind(plain, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  EXPECT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(server, 1), 0);
  close(plain);
  close(server);
}

TEST(ReservedPortTest, WhatIsNoAddressIsNamed) {
  EXPECT_EQ(ReservedPort("worker-0").error(),
            "RINGMASTER_BIND_WORKER is 'worker-0', an IP address is expected");
}

}  // namespace
}  // namespace ringmaster::launcher
