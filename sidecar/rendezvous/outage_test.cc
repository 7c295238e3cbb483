#include "sidecar/rendezvous/outage.h"

#include <gtest/gtest.h>

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Word = Outage::Word;

const Outage::Clock::time_point kStart{};

TEST(OutageTest, AMomentIsMentionedOnceAndNotWarnedOf) {
  Outage outage;
  EXPECT_EQ(outage.Failed(kStart), Word::kMention);
  EXPECT_EQ(outage.Failed(kStart + milliseconds(160)), Word::kNothing);
  EXPECT_EQ(outage.Failed(kStart + Outage::kPatience - milliseconds(1)), Word::kNothing);
  EXPECT_EQ(outage.Ended(kStart + Outage::kPatience), std::nullopt) << "nobody was told";
}

TEST(OutageTest, ALongOneIsWarnedOfOnceAndItsEndIsSaid) {
  Outage outage;
  outage.Failed(kStart);
  EXPECT_EQ(outage.Failed(kStart + Outage::kPatience), Word::kWarn);
  EXPECT_EQ(outage.Failed(kStart + Outage::kPatience + seconds(2)), Word::kNothing);
  EXPECT_EQ(outage.Lasted(kStart + seconds(17)), seconds(17));
  EXPECT_EQ(outage.Ended(kStart + seconds(40)), seconds(40));
  EXPECT_EQ(outage.Ended(kStart + seconds(41)), std::nullopt) << "said once";
}

TEST(OutageTest, OneThatGoesOnForHoursIsSaidAgainNowAndThen) {
  Outage outage;
  outage.Failed(kStart);
  int warnings = 0;
  for (seconds at{2}; at <= minutes(60); at += seconds(2)) {
    warnings += outage.Failed(kStart + at) == Word::kWarn ? 1 : 0;
  }
  EXPECT_EQ(warnings, 6);
}

TEST(OutageTest, TheNextOutageIsGivenItsTimeAgain) {
  Outage outage;
  outage.Failed(kStart);
  outage.Failed(kStart + Outage::kPatience);
  outage.Ended(kStart + seconds(20));
  EXPECT_EQ(outage.Failed(kStart + seconds(30)), Word::kMention);
  EXPECT_EQ(outage.Failed(kStart + seconds(44)), Word::kNothing);
  EXPECT_EQ(outage.Failed(kStart + seconds(45)), Word::kWarn);
}

}  // namespace
}  // namespace ringmaster::rendezvous
