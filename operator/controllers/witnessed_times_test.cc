#include "operator/controllers/witnessed_times.h"

#include <gtest/gtest.h>

namespace ringmaster::controllers {
namespace {

using planner::Time;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Time kCreated = Time() + std::chrono::hours(1000);

planner::PodFacts Pod(std::optional<Time> running_since) {
  planner::PodFacts pod;
  pod.uid = "u";
  pod.created = kCreated;
  pod.running_since = running_since;
  return pod;
}

class WitnessedTimesTest : public testing::Test {
 protected:
  std::optional<Time> RunningSince(Time now, planner::PodFacts pod) {
    std::vector<planner::PodFacts> pods = {std::move(pod)};
    times_.Correct("ns/job", now, &pods);
    return pods.front().running_since;
  }
  WitnessedTimes times_;
};

TEST_F(WitnessedTimesTest, WhatIsSeenToHappenHappensNowWhateverTheNodesClockSays) {
  EXPECT_EQ(RunningSince(kCreated + minutes(1), Pod(std::nullopt)), std::nullopt);
  // Eleven minutes behind: the image took that long, so the pod existed at that time.
  const Time began = kCreated + minutes(12);
  EXPECT_EQ(RunningSince(began, Pod(began - minutes(11))), began);
  EXPECT_EQ(RunningSince(began + seconds(30), Pod(began - minutes(11))), began);
  EXPECT_EQ(RunningSince(began + minutes(20), Pod(began - minutes(11))), began);
}

TEST_F(WitnessedTimesTest, WhatHappenedBeforeTheFirstLookIsWhenTheNodeSaysIfThatCanBe) {
  const Time now = kCreated + minutes(5);
  EXPECT_EQ(RunningSince(now, Pod(kCreated + minutes(2))), kCreated + minutes(2));
  EXPECT_EQ(RunningSince(now, Pod(kCreated - minutes(11))), kCreated);
  EXPECT_EQ(RunningSince(now, Pod(now + minutes(20))), now);
}

TEST_F(WitnessedTimesTest, AContainerThatIsStartedAgainBeginsAnew) {
  (void)RunningSince(kCreated, Pod(std::nullopt));
  EXPECT_EQ(RunningSince(kCreated + minutes(1), Pod(kCreated)), kCreated + minutes(1));
  EXPECT_EQ(RunningSince(kCreated + minutes(2), Pod(std::nullopt)), std::nullopt);
  EXPECT_EQ(RunningSince(kCreated + minutes(3), Pod(kCreated)), kCreated + minutes(3));
}

TEST_F(WitnessedTimesTest, PodsThatHaveGoneAndJobsThatAreForgottenLeaveNothing) {
  (void)RunningSince(kCreated, Pod(std::nullopt));
  std::vector<planner::PodFacts> none;
  times_.Correct("ns/job", kCreated + minutes(1), &none);
  const Time said = kCreated + minutes(1), now = kCreated + minutes(2);
  EXPECT_EQ(RunningSince(now, Pod(said)), said);
  times_.Correct("ns/job", now, &none);
  (void)RunningSince(now, Pod(std::nullopt));
  times_.Forget("ns/job");
  EXPECT_EQ(RunningSince(now, Pod(said)), said);
}

TEST_F(WitnessedTimesTest, TheOtherMomentsLikewise) {
  std::vector<planner::PodFacts> pods = {Pod(std::nullopt)};
  times_.Correct("ns/job", kCreated, &pods);
  const Time now = kCreated + minutes(1);
  pods.front().accepted_at = kCreated - minutes(9);
  pods.front().ended_at = kCreated + minutes(9);
  times_.Correct("ns/job", now, &pods);
  EXPECT_EQ(pods.front().accepted_at, now);
  EXPECT_EQ(pods.front().ended_at, now);
}

}  // namespace
}  // namespace ringmaster::controllers
