#include "operator/cli/rank_zero_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kFirst = (uint64_t{1} << 40) + 1;

class RankZeroOutputTest : public testing::Test {
 protected:
  RankZeroOutputTest() {
    AddPod("p0", "0");
    AddPod("p1", "1");
  }
  void AddPod(const std::string& name, const char* index) {
    job_.OnPod({{"metadata",
                 {{"name", name}, {"labels", {{"training.kubeflow.org/replica-index", index}}}}}},
               false);
  }
  // The answer of the sidecar of `pod`: the workers of this view, in rank order.
  std::vector<std::string> Status(const std::string& pod, uint64_t epoch,
                                  std::vector<inspection::RankHolder> ranks) {
    inspection::SidecarStatus status;
    status.pod = pod;
    status.epoch = epoch;
    status.ranks = std::move(ranks);
    job_.OnStatus(status, TimePoint{});
    return output_.OnStatus(job_, pod);
  }
  std::vector<std::string> Line(const std::string& pod, const std::string& line) {
    return output_.OnLine(job_, pod, line);
  }

  const std::vector<inspection::RankHolder> both_ = {{"p0", 0, 1}, {"p1", 0, 1}},
                                            second_ = {{"p1", 0, 1}};
  JobRun job_{"default", "digits"};
  RankZeroOutput output_;
};

TEST_F(RankZeroOutputTest, WhatTheNewRankZeroPrintedBeforeItWasHeardOfIsShownOnce) {
  Status("p0", kFirst, both_);
  Status("p1", kFirst, both_);
  EXPECT_THAT(Line("p0", "step 31"), ElementsAre("[0] step 31"));
  EXPECT_THAT(Line("p1", "step 32"), IsEmpty());
  EXPECT_THAT(Line("p1", "step 33"), IsEmpty());
  EXPECT_THAT(Status("p1", kFirst + 1, second_), ElementsAre("[1] step 32", "[1] step 33"));
  EXPECT_THAT(Status("p1", kFirst + 1, second_), IsEmpty());
  EXPECT_THAT(Line("p1", "step 34"), ElementsAre("[1] step 34"));
}

// The first of two answers may have been sent before the line was printed.
TEST_F(RankZeroOutputTest, ALineIsGivenUpWhenItsPodAskedAfterItHasNoRankZero) {
  Status("p0", kFirst, both_);
  Line("p1", "long ago");
  Status("p1", kFirst, both_);
  Line("p1", "just now");
  Status("p1", kFirst, both_);
  EXPECT_THAT(Status("p0", kFirst + 1, second_), ElementsAre("[1] just now"));
}

TEST_F(RankZeroOutputTest, TheLastWordsOfTheOldRankZeroAreShownUntilItsPlaceHasARankAgain) {
  Status("p0", kFirst, both_);
  Status("p1", kFirst + 1, second_);
  EXPECT_THAT(Line("p0", "step 31"), ElementsAre("[0] step 31"));
  Status("p1", kFirst + 2, {{"p1", 0, 1}, {"p0", 0, 2}});
  EXPECT_THAT(Line("p0", "step 40"), IsEmpty());
}

TEST_F(RankZeroOutputTest, TheLastWordsOfARankZeroThatWentBeforeAnybodyAskedAreShown) {
  EXPECT_THAT(Line("p0", "step 3"), ElementsAre("[0] step 3"));
  inspection::SidecarStatus status;
  status.pod = "p1";
  status.epoch = kFirst + 1;
  status.ranks = second_;
  status.rebuilds.push_back(
      {.epoch = kFirst + 1, .parent = kFirst, .members = {"p1"}, .left = {"p0"}});
  job_.OnStatus(status, TimePoint{});
  EXPECT_THAT(output_.OnStatus(job_, "p1"), IsEmpty());
  EXPECT_THAT(Line("p0", "step 4"), ElementsAre("[0] step 4"));
  EXPECT_THAT(Line("p1", "step 5"), ElementsAre("[1] step 5"));
}

TEST_F(RankZeroOutputTest, APodThatGetsTheNameOfTheOldOneIsNotTakenForIt) {
  Status("p0", kFirst, both_);
  Status("p1", kFirst + 1, second_);
  output_.OnNewPod("p0");
  EXPECT_THAT(Line("p0", "begins"), IsEmpty());
}

TEST_F(RankZeroOutputTest, BeforeTheFirstViewTheFirstPodSpeaksAndNothingComesTwice) {
  EXPECT_THAT(Line("p0", "loads"), ElementsAre("[0] loads"));
  EXPECT_THAT(Line("p1", "loads"), IsEmpty());
  EXPECT_THAT(Status("p0", 0, {}), IsEmpty());
  EXPECT_THAT(Status("p0", kFirst, both_), IsEmpty());
}

TEST_F(RankZeroOutputTest, TheFirstRankZeroIsShownFromItsBeginningWhereverItIs) {
  Line("p0", "loads");
  Line("p1", "loads");
  for (int i = 0; i < 5; ++i) Status("p1", 0, {});
  EXPECT_THAT(Status("p0", kFirst, {{"p1", 0, 1}, {"p0", 0, 1}}), ElementsAre("[1] loads"));
}

TEST_F(RankZeroOutputTest, OfAPodWithSeveralWorkersEachIsHeldForItself) {
  job_.OnJob({{"metadata", {{"name", "digits"}}}, {"spec", {{"slotsPerWorker", 2}}}}, false);
  Status("p0", kFirst, {{"p0", 0, 1}, {"p0", 1, 1}});
  EXPECT_THAT(Line("p0", "[0] step 1"), ElementsAre("[0] step 1"));
  EXPECT_THAT(Line("p0", "[1] step 2"), IsEmpty());
  EXPECT_THAT(Status("p0", kFirst + 1, {{"p0", 1, 1}}), ElementsAre("[1] step 2"));
}

TEST_F(RankZeroOutputTest, HoldsNoMoreThanSomeLines) {
  for (int i = 0; i < 1500; ++i) Line("p1", std::to_string(i));
  const auto shown = Status("p0", kFirst, second_);
  ASSERT_EQ(shown.size(), 1000u);
  EXPECT_EQ(shown.front(), "[1] 500");
}

}  // namespace
}  // namespace ringmaster::cli
