#include "operator/scheduler/waiting_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAre;

constexpr Moment kNow = Moment(std::chrono::hours(1));

class WaitingLineTest : public testing::Test {
 protected:
  // A job that wants one pod and came `after` seconds.
  WaitingJob& Add(const std::string& job, int after = 0) {
    WaitingJob& waiting = line_.Of(job);
    waiting.request = {.job = job,
                       .since = kNow + std::chrono::seconds(after),
                       .pods = {std::make_shared<const Json>()},
                       .sizes = {1}};
    line_.Keep(job);
    return waiting;
  }
  std::vector<std::string> Order(const std::string& taker = "") {
    std::vector<std::string> names;
    for (const WaitingJob* job : line_.InOrder([&](const auto& j) { return j == taker; })) {
      names.push_back(job->request.job);
    }
    return names;
  }
  WaitingLine line_;
};

TEST_F(WaitingLineTest, WhoIsSatisfiedStandsInLineNoMoreAndIsStillHere) {
  WaitingJob& job = Add("a");
  EXPECT_FALSE(line_.IsEmpty());
  job.answer.fit = 1;
  line_.Keep("a");
  EXPECT_TRUE(line_.IsEmpty());
  EXPECT_EQ(line_.At("a").answer.fit, 1);
  job.answer.fit = 0;
  line_.Keep("a");
  EXPECT_THAT(Order(), ElementsAre("a"));
}

TEST_F(WaitingLineTest, WhoIsRemovedHasLeftTheLine) {
  Add("a");
  line_.Remove("a");
  EXPECT_TRUE(line_.IsEmpty());
  EXPECT_TRUE(line_.all().empty());
}

TEST_F(WaitingLineTest, AJobIsNotAmongTheOthers) {
  Add("a");
  EXPECT_FALSE(line_.HasOthersThan("a"));
  EXPECT_TRUE(line_.HasOthersThan("b"));
  Add("b");
  EXPECT_TRUE(line_.HasOthersThan("a"));
}

TEST_F(WaitingLineTest, OnlyAMoreImportantJobThatPreemptsTakes) {
  AdmissionRequest& request = Add("a").request;
  request.priority = 5;
  EXPECT_FALSE(line_.HasTakerFrom(0)) << "it does not preempt";
  request.preempts = true;
  EXPECT_TRUE(line_.HasTakerFrom(4));
  EXPECT_FALSE(line_.HasTakerFrom(5));
  line_.At("a").answer.fit = 1;
  line_.Keep("a");
  EXPECT_FALSE(line_.HasTakerFrom(4)) << "it has what it wants";
}

TEST_F(WaitingLineTest, WhoHasWaitedLongerComesFirstAndNamesDecideBetweenEquals) {
  Add("late", 2);
  Add("d", 1);
  Add("c", 1);
  EXPECT_THAT(Order(), ElementsAre("c", "d", "late"));
}

TEST_F(WaitingLineTest, PriorityCountsMoreThanAgeAndAStartMoreThanGrowth) {
  Add("grows", 0).request.state = GangState::kRuns;
  Add("starts", 1);
  Add("important", 2).request.priority = 1;
  EXPECT_THAT(Order(), ElementsAre("important", "starts", "grows"));
}

TEST_F(WaitingLineTest, WhoHoldsTooFewPodsOrTakesPodsComesFirst) {
  Add("important").request.priority = 9;
  Add("short", 2).request.state = GangState::kShort;
  Add("taker", 3);
  EXPECT_THAT(Order("taker"), ElementsAre("short", "taker", "important"));
}

}  // namespace
}  // namespace ringmaster::scheduler
