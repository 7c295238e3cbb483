#include "operator/controllers/recovery_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::controllers {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

job::Rebuild Rebuild(std::uint64_t epoch, double connect, std::int64_t at_unix_ms = 5000) {
  return {.epoch = epoch,
          .reason = "WorkerLost",
          .at_unix_ms = at_unix_ms,
          .seconds = {{"decide", 1}, {"connect", connect}}};
}

class RecoveryMeterTest : public testing::Test {
 protected:
  RecoveryMeter meter_{1000};
  RecoveryMeter::Clock::time_point now_{seconds(100)};
};

TEST_F(RecoveryMeterTest, ManyReportsOnOneViewAreOneRecoveryByTheSlowestPod) {
  meter_.Report("job", Rebuild(7, 0.2), now_);
  meter_.Report("job", Rebuild(7, 0.5), now_ + seconds(1));
  meter_.Report("job", Rebuild(7, 0.1), now_ + seconds(2));
  EXPECT_TRUE(meter_.TakeSettled(now_ + seconds(6)).empty()) << "the last report is 4 s old";
  const auto settled = meter_.TakeSettled(now_ + seconds(7));
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0].cause, "WorkerLost");
  EXPECT_THAT(settled[0].seconds,
              UnorderedElementsAre(Pair("decide", 1.0), Pair("connect", 0.5), Pair("total", 1.5)));
  EXPECT_TRUE(meter_.TakeSettled(now_ + seconds(100)).empty()) << "each is taken once";
}

TEST_F(RecoveryMeterTest, WhatIsReportedAgainLaterIsNotCountedAgain) {
  meter_.Report("job", Rebuild(7, 0.2), now_);
  ASSERT_EQ(meter_.TakeSettled(now_ + seconds(5)).size(), 1u);
  meter_.Report("job", Rebuild(7, 0.2), now_ + seconds(60));
  EXPECT_TRUE(meter_.TakeSettled(now_ + seconds(100)).empty());
  meter_.Report("job", Rebuild(8, 0.2), now_ + seconds(60));
  meter_.Report("other", Rebuild(7, 0.2), now_ + seconds(60));
  EXPECT_EQ(meter_.TakeSettled(now_ + seconds(100)).size(), 2u);
}

TEST_F(RecoveryMeterTest, AViewFromBeforeTheOperatorStartedWasAnothersToCount) {
  meter_.Report("job", Rebuild(7, 0.2, 999), now_);
  EXPECT_TRUE(meter_.TakeSettled(now_ + seconds(100)).empty());
  meter_.Report("job", Rebuild(8, 0.2, 0), now_);
  EXPECT_EQ(meter_.TakeSettled(now_ + seconds(100)).size(), 1u) << "no time said: counted";
}

TEST_F(RecoveryMeterTest, AForgottenJobLeavesNothing) {
  meter_.Report("job", Rebuild(7, 0.2), now_);
  meter_.Forget("job");
  EXPECT_TRUE(meter_.TakeSettled(now_ + seconds(100)).empty());
}

}  // namespace
}  // namespace ringmaster::controllers
