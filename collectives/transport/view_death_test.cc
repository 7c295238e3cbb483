#include "collectives/transport/view_death.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

namespace ringmaster::transport {
namespace {

constexpr uint64_t kTag = 7;

Status Fine() { return {}; }

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

TEST(ViewDeathTest, TheFirstReasonCountsAndWhoPollsHearsOfIt) {
  ViewDeath death;
  EXPECT_TRUE(death.status().ok());
  EXPECT_FALSE(Readable(death.event()));
  EXPECT_TRUE(death.Die("rank 1 died"));
  EXPECT_FALSE(death.Die("rank 2 died"));
  EXPECT_TRUE(death.dead());
  EXPECT_EQ(death.status().message(), "rank 1 died");
  EXPECT_TRUE(Readable(death.event()));
}

TEST(ViewDeathTest, ASleepEndsWhenTheFlagIsRaised) {
  ViewDeath death;
  Flag flag{};
  std::thread peer([&] { Raise(&flag, kTag, 3); });
  EXPECT_TRUE(death.SleepOn(&flag, kTag, 3, Fine).ok());
  peer.join();
  EXPECT_TRUE(Reached(flag, kTag, 3));
}

TEST(ViewDeathTest, ASleepEndsWithTheView) {
  ViewDeath death;
  Flag flag{};
  std::thread killer([&] { death.Die("rank 1 died"); });
  EXPECT_EQ(death.SleepOn(&flag, kTag, 3, Fine).message(), "rank 1 died");
  killer.join();
}

TEST(ViewDeathTest, ASleepEndsWithTheFirstErrorOfItsCheck) {
  ViewDeath death;
  Flag flag{};
  int calls = 0;
  const auto check = [&] { return ++calls < 3 ? Status() : Status(RM_ERR_TIMEOUT, "too late"); };
  EXPECT_EQ(death.SleepOn(&flag, kTag, 3, check).code(), RM_ERR_TIMEOUT);
  EXPECT_EQ(calls, 3);
}

TEST(ViewDeathTest, WhatWasRaisedBeforeThePeerLeftCounts) {
  ViewDeath death;
  Flag flag{};
  const auto raise_and_leave = [&] {
    Raise(&flag, kTag, 3);
    return Status(RM_ERR_EPOCH_MOVED, "rank 1 has left the view");
  };
  EXPECT_TRUE(death.SleepOn(&flag, kTag, 3, raise_and_leave).ok());
  EXPECT_FALSE(death.SleepOn(&flag, kTag, 4, raise_and_leave).ok());
}

}  // namespace
}  // namespace ringmaster::transport
