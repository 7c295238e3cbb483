#include "sidecar/rendezvous/failed_tries.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Streak = FailedTries::Streak;

const FailedTries::Clock::time_point kStart = FailedTries::Clock::time_point{} + minutes(5);

TEST(FailedTriesTest, TheFirstIsSaidAndTheEndOfThem) {
  FailedTries tries;
  EXPECT_EQ(tries.Failed(kStart), (Streak{1, milliseconds(0)}));
  EXPECT_EQ(tries.Failed(kStart + milliseconds(500)), std::nullopt);
  EXPECT_EQ(tries.Succeeded(kStart + milliseconds(900)), (Streak{2, milliseconds(900)}));
  EXPECT_EQ(tries.Succeeded(kStart + seconds(2)), std::nullopt) << "said once";
}

TEST(FailedTriesTest, ThatItGoesOnIsSaidOnceAMinuteWithTheCount) {
  FailedTries tries;
  std::vector<std::uint64_t> said;
  for (seconds at{0}; at <= minutes(3); at += seconds(1)) {
    if (const auto word = tries.Failed(kStart + at)) said.push_back(word->tries);
  }
  EXPECT_EQ(said, (std::vector<std::uint64_t>{1, 61, 121, 181}));
  EXPECT_EQ(tries.Succeeded(kStart + minutes(4)), (Streak{181, minutes(4)}));
}

TEST(FailedTriesTest, ASeldomTryIsSaidEachTime) {
  FailedTries tries;
  tries.Failed(kStart);
  EXPECT_EQ(tries.Failed(kStart + FailedTries::kLogAgain), (Streak{2, minutes(1)}));
  EXPECT_EQ(tries.Failed(kStart + minutes(2) - milliseconds(1)), std::nullopt);
}

TEST(FailedTriesTest, WhatFailsAfterASuccessBeginsAnew) {
  FailedTries tries;
  tries.Failed(kStart);
  tries.Succeeded(kStart + seconds(1));
  EXPECT_EQ(tries.Failed(kStart + seconds(2)), (Streak{1, milliseconds(0)}));
  EXPECT_EQ(tries.Succeeded(kStart + seconds(3)), (Streak{1, seconds(1)}));
}

TEST(FailedTriesTest, WhereNothingHasFailedThereIsNothingToSay) {
  EXPECT_EQ(FailedTries().Succeeded(kStart), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::rendezvous
