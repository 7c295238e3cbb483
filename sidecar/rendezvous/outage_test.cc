#include "sidecar/rendezvous/outage.h"

#include <gtest/gtest.h>

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Severity = Outage::Severity;

const Outage::Clock::time_point kStart{};

TEST(OutageTest, AMomentIsMentionedOnceAndNotWarnedOf) {
  Outage outage;
  EXPECT_EQ(outage.Failed(kStart), Severity::kInfo);
  EXPECT_EQ(outage.Failed(kStart + milliseconds(160)), Severity::kNothing);
  EXPECT_EQ(outage.Failed(kStart + Outage::kPatience - milliseconds(1)), Severity::kNothing);
  EXPECT_EQ(outage.Ended(kStart + Outage::kPatience), std::nullopt) << "nobody was told";
}

TEST(OutageTest, ALongOneIsWarnedOfOnceAndItsEndIsSaid) {
  Outage outage;
  outage.Failed(kStart);
  EXPECT_EQ(outage.Failed(kStart + Outage::kPatience), Severity::kWarning);
  EXPECT_EQ(outage.Failed(kStart + Outage::kPatience + seconds(2)), Severity::kNothing);
  EXPECT_EQ(outage.Lasted(kStart + seconds(17)), seconds(17));
  EXPECT_EQ(outage.Ended(kStart + seconds(40)), seconds(40));
  EXPECT_EQ(outage.Ended(kStart + seconds(41)), std::nullopt) << "said once";
}

TEST(OutageTest, OneThatGoesOnForHoursIsSaidAgainNowAndThen) {
  Outage outage;
  outage.Failed(kStart);
  int warnings = 0;
  for (seconds at{2}; at <= minutes(60); at += seconds(2)) {
    warnings += outage.Failed(kStart + at) == Severity::kWarning ? 1 : 0;
  }
  EXPECT_EQ(warnings, 6);
}

TEST(OutageTest, TheNextOutageIsGivenItsTimeAgain) {
  Outage outage;
  outage.Failed(kStart);
  outage.Failed(kStart + Outage::kPatience);
  outage.Ended(kStart + seconds(20));
  EXPECT_EQ(outage.Failed(kStart + seconds(30)), Severity::kInfo);
  EXPECT_EQ(outage.Failed(kStart + seconds(44)), Severity::kNothing);
  EXPECT_EQ(outage.Failed(kStart + seconds(45)), Severity::kWarning);
}

}  // namespace
}  // namespace ringmaster::rendezvous
