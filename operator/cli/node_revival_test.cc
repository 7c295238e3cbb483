#include "operator/cli/node_revival.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Sight = NodeRevival::Sight;
using End = NodeRevival::Attempt::End;

class NodeRevivalTest : public ::testing::Test {
 protected:
  // Observes until an attempt is due. Returns how long that took; -1 s if it never was.
  seconds AwaitAttempt(Sight sight) {
    for (int i = 0; i < 1000; ++i, now_ += milliseconds(100))
      if (revival_.Look(sight, now_)) return std::chrono::floor<seconds>(milliseconds(100) * i);
    return seconds(-1);
  }
  void Fail(const std::string& why, bool stays_so = false) {
    revival_.Finish({.end = End::kFailed, .why = why, .stays_so = stays_so}, now_);
  }

  NodeRevival::Time now_ = NodeRevival::Time() + seconds(1000);
  NodeRevival revival_{"b", now_ - seconds(100)};
};

TEST_F(NodeRevivalTest, ANodeThatIsHeardIsLeftAlone) {
  EXPECT_EQ(AwaitAttempt(Sight::kHeard), seconds(-1));
  EXPECT_THAT(revival_.TakeMessages(), IsEmpty());
}

TEST_F(NodeRevivalTest, ANodeThatHasEndedIsStartedAgainAfterASecond) {
  EXPECT_EQ(AwaitAttempt(Sight::kGone), seconds(1));
  EXPECT_FALSE(revival_.Look(Sight::kGone, now_ + seconds(100))) << "one attempt at a time";
  revival_.Finish({.end = End::kStarted}, now_);
  EXPECT_THAT(revival_.TakeMessages(),
              ElementsAre("host b: its node process has ended; it is started again in 1 s",
                          "host b: its node process was started again"));
  EXPECT_FALSE(revival_.Look(Sight::kGone, now_ + seconds(4))) << "the list is older";
}

TEST_F(NodeRevivalTest, PausesDoubleUntilTheNodeHasStoodForAMinute) {
  std::vector<seconds> pauses;
  for (int i = 0; i < 7; ++i) {
    pauses.push_back(AwaitAttempt(Sight::kSilent));
    Fail("no route");
  }
  EXPECT_THAT(pauses, ElementsAre(seconds(1), seconds(2), seconds(4), seconds(8), seconds(16),
                                  seconds(30), seconds(30)));
  EXPECT_EQ(AwaitAttempt(Sight::kSilent), seconds(30));
  revival_.Finish({.end = End::kStarted}, now_);
  now_ += seconds(59);
  EXPECT_EQ(AwaitAttempt(Sight::kGone), seconds(30)) << "it has not stood for long";
  revival_.Finish({.end = End::kStarted}, now_);
  now_ += seconds(60);
  EXPECT_EQ(AwaitAttempt(Sight::kGone), seconds(1));
}

TEST_F(NodeRevivalTest, WhatSshSaysIsOneLineAndSaidOnceWhereItIsTheSame) {
  for (int i = 0; i < 8; ++i) {
    AwaitAttempt(Sight::kSilent);
    Fail("ssh: no route\r\nto host");
  }
  const auto messages = revival_.TakeMessages();
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(messages[0],
            "host b: nothing is heard of its node process; it is looked for by ssh in 1 s");
  EXPECT_EQ(messages[1], "host b: ssh: no route; to host; tried again in 2 s");
  EXPECT_EQ(messages[5], "host b: ssh: no route; to host; tried again in 30 s");
}

TEST_F(NodeRevivalTest, ANodeThatRanAllTheTimeIsHeardAgain) {
  AwaitAttempt(Sight::kSilent);
  revival_.Finish({.end = End::kRanAllTheTime}, now_);
  EXPECT_FALSE(revival_.Look(Sight::kHeard, now_));
  EXPECT_THAT(revival_.TakeMessages(),
              ElementsAre(HasSubstr("nothing is heard of its node process"),
                          "host b: its node process runs there, but nothing is heard of it; it is "
                          "looked for again in 2 s",
                          "host b: its node process is heard again"));
  EXPECT_EQ(AwaitAttempt(Sight::kHeard), seconds(-1));
}

TEST_F(NodeRevivalTest, WhatOnlyAPersonCanMendIsTriedTenTimes) {
  for (int i = 0; i < 9; ++i) {
    ASSERT_NE(AwaitAttempt(Sight::kGone), seconds(-1)) << i;
    Fail("Permission denied", true);
  }
  AwaitAttempt(Sight::kGone);
  Fail("no route");
  (void)revival_.TakeMessages();
  for (int i = 0; i < 10; ++i) {
    ASSERT_NE(AwaitAttempt(Sight::kGone), seconds(-1)) << "the row was broken, " << i;
    Fail("Permission denied", true);
  }
  EXPECT_EQ(AwaitAttempt(Sight::kGone), seconds(-1));
  EXPECT_THAT(revival_.TakeMessages().back(),
              "host b: Permission denied; that was so 10 times: it is not tried again");
}

TEST_F(NodeRevivalTest, AHostThatWasGivenUpIsTendedAgainOnceItIsHeard) {
  for (int i = 0; i < 10; ++i) {
    AwaitAttempt(Sight::kSilent);
    Fail("Permission denied", true);
  }
  EXPECT_FALSE(revival_.Look(Sight::kHeard, now_));
  now_ += seconds(60);
  EXPECT_EQ(AwaitAttempt(Sight::kSilent), seconds(1));
}

}  // namespace
}  // namespace ringmaster::cli
