#include "common/job/worker_times.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::job {
namespace {

const WorkerTimes kTimes = {
    .seconds = 10, .blocked = 4, .waiting = 3, .running = 2, .bytes = 1 << 20};

TEST(WorkerTimesTest, JsonKeepsEveryField) {
  EXPECT_EQ(WorkerTimesFromJson(ToJson(kTimes)), kTimes);
}

TEST(WorkerTimesTest, WhatIsMissingOrNoTimeIsNothing) {
  EXPECT_EQ(WorkerTimesFromJson(nullptr), WorkerTimes());
  EXPECT_EQ(WorkerTimesFromJson({{"seconds", "ten"}, {"blocked", -1}, {"bytes", -5}}),
            WorkerTimes());
}

TEST(WorkerTimesTest, BetweenTwoLooksCountsWhatWasAdded) {
  WorkerTimes later = kTimes;
  later.seconds += 2;
  later.waiting += 1.5;
  later.bytes += 100;
  EXPECT_EQ(Between(kTimes, later), (WorkerTimes{.seconds = 2, .waiting = 1.5, .bytes = 100}));
}

TEST(WorkerTimesTest, AnotherProcessCountsFromItsBegin) {
  const WorkerTimes young = {.seconds = 1, .blocked = 0.5};
  EXPECT_EQ(Between(kTimes, young), young);
}

}  // namespace
}  // namespace ringmaster::job
