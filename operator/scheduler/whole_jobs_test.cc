// The decision which jobs give up all their pods, and how the admission continues.
#include "operator/scheduler/whole_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/scheduler/admission.h"
#include "operator/scheduler/testing/preemption_case.h"

namespace ringmaster::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;
using namespace scheduler::testing;  // NOLINT: the words of the tables

const std::pair<std::string, int> kA = {"a", 1}, kB = {"b", 1}, kC = {"c", 1};

// A job that needs all its pods.
Trains Rigid(const std::string& job, int priority, std::vector<std::pair<std::string, int>> pods,
             int minutes = 0) {
  const int least = static_cast<int>(pods.size());
  return {job, priority, least, std::move(pods), {}, true, minutes};
}
Trains Stays(Trains job) {
  job.whole = false;
  return job;
}
Trains Elastic(Trains job, int least) {
  job.least = least;
  return job;
}

// A thousand jobs of one pod. Every second node has a GPU too few for the job that waits, so no
// sequence of jobs is enough without some that don't help.
TEST(WholeJobsTest, HoweverManyJobsHaveToGiveTheSearchesAreFew) {
  Case c{.name = "", .nodes = {}, .jobs = {}, .pods = 300, .gpus = 2, .taken = {}};
  for (int i = 0; i < 1000; ++i) {
    const std::string node = "n" + std::to_string(i);
    c.nodes.push_back({node, 1 + i % 2});
    c.jobs.push_back(Rigid("low" + std::to_string(i), 0, {{node, 1}}));
  }
  const Took took = Decide(c);
  EXPECT_EQ(took.pods.size(), 300u) << "nobody gives who is not needed";
  EXPECT_GT(took.searches, 0);
  EXPECT_LE(took.searches, kMostSearches + 1);
}

class WholeJobsTable : public ::testing::TestWithParam<Case> {};

TEST_P(WholeJobsTable, TakesNoMoreJobsThanAreNeeded) {
  EXPECT_THAT(Decide(GetParam()).pods, UnorderedElementsAreArray(GetParam().taken));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WholeJobsTable,
    ::testing::Values(
        Case{"AllOfAJobWhereThatIsWhatItTakes",
             {{"a", 2}},
             {Rigid("low", 0, {kA, kA})},
             1,
             1,
             {"low-0", "low-1"}},
        Case{"NobodyWhereSparePodsSuffice",
             {{"a", 4}},
             {Rigid("low", 0, {kA, kA}), Elastic(Rigid("mid", 3, {kA, kA}), 1)},
             1,
             1,
             {"mid-1"}},
        Case{"AJobThatMayNotBeAskedKeepsAll",
             {{"a", 2}},
             {Stays(Rigid("low", 0, {kA, kA}))},
             1,
             1,
             kNo},
        Case{"NobodyOfTheSamePriority", {{"a", 2}}, {Rigid("even", 5, {kA, kA})}, 1, 1, kNo},
        Case{"NobodyWhereAllWouldNotSuffice",
             {{"a", 2}},
             {Rigid("low", 0, {kA}), Rigid("high", 9, {kA})},
             2,
             1,
             kNo},
        Case{"TheLowestPriority",
             {{"a", 2}},
             {Rigid("mid", 3, {kA}), Rigid("low", 0, {kA})},
             1,
             1,
             {"low-0"}},
        Case{"OfSeveralPrioritiesAsManyAsAreNeeded",
             {{"a", 3}},
             {Rigid("mid", 3, {kA}), Rigid("low", 0, {kA}), Rigid("top", 4, {kA})},
             2,
             1,
             {"low-0", "mid-0"}},
        Case{"TheLowOneIsLetBeWhereTheOtherHasToGoAnyway",
             {{"a", 1}, {"b", 4}},
             {Rigid("low", 0, {kA}), Rigid("mid", 3, {kB, kB, kB, kB})},
             1,
             4,
             {"mid-0", "mid-1", "mid-2", "mid-3"}},
        Case{"OfEqualsTheSmallestThatWillDo",
             {{"a", 4}, {"b", 2}},
             {Rigid("large", 0, {kA, kA, kA, kA}), Rigid("small", 0, {kB, kB})},
             2,
             1,
             {"small-0", "small-1"}},
        Case{"OfEqualsTheYoungest",
             {{"a", 2}},
             {Rigid("young", 0, {kA}, 5), Rigid("old", 0, {kA}, 50)},
             1,
             1,
             {"young-0"}},
        Case{"OfEqualsTheOneThatHasNotBegun",
             {{"a", 2}},
             {Rigid("old", 0, {kA}, 50), Rigid("unbegun", 0, {kA}, kNotBegun)},
             1,
             1,
             {"unbegun-0"}},
        Case{"OneLargeJobRatherThanManySmallOnesThatDoNotSuffice",
             {{"a", 1}, {"b", 1}, {"c", 2}},
             {Rigid("one", 0, {kA}), Rigid("two", 0, {kB}), Rigid("pair", 0, {kC, kC})},
             1,
             2,
             {"pair-0", "pair-1"}},
        Case{"SeveralWhereNoneSufficesAlone",
             {{"a", 3}},
             {Rigid("one", 0, {kA}), Rigid("two", 0, {kA}), Rigid("three", 0, {kA}, 9)},
             2,
             1,
             {"one-0", "two-0"}},
        Case{"WithSparePodsOfOthers",
             {{"a", 4}},
             {Rigid("low", 0, {kA, kA}), Elastic(Stays(Rigid("mid", 3, {kA, kA})), 1)},
             3,
             1,
             {"low-0", "low-1", "mid-1"}},
        Case{"WhoWasAskedIsAskedAgain",
             {{"a", 2}},
             {Rigid("one", 0, {kA}), Rigid("two", 0, {kA}, 9)},
             1,
             1,
             {"two-0"},
             {},
             {{"two-0", "two-0", "ns/two", true}}},
        Case{"WhoWasAskedNeedlesslyIsLetBe",
             {{"a", 2}},
             {Rigid("low", 0, {kA})},
             1,
             1,
             {},
             {},
             {{"low-0", "low-0", "ns/low", true}}},
        Case{"WhoLeavesAlreadyIsCounted",
             {{"a", 2}},
             {Rigid("one", 0, {kA}), Rigid("two", 0, {kA})},
             1,
             1,
             {"one-0"},
             {"one-0"},
             {{"one-0", "one-0", "ns/one", true}}},
        Case{"WhatIsTakenForOthersIsNotTakenTwice",
             {{"a", 2}},
             {Rigid("one", 0, {kA}), Rigid("two", 0, {kA})},
             2,
             1,
             {"two-0"},
             {},
             {},
             {"one-0"}}),
    [](const auto& info) { return info.param.name; });

// A node of two GPUs, both needed by a job of low priority.
class WholeJobTest : public ::testing::Test {
 protected:
  WholeJobTest() {
    admission_.capacity().SetNode(Node("a", 2));
    for (int i = 0; i < 2; ++i) Runs(i);
    Holds();
  }
  void Runs(int i, bool leaves = false) {
    admission_.capacity().SetPod(Pod(Name(i), 1, "a"), "ns/low",
                                 leaves ? std::optional(kNow) : std::nullopt);
  }
  static std::string Name(int i) { return "low-" + std::to_string(i); }
  void Holds() {
    admission_.SetHolding({"ns/low", 0, {{Name(1), Name(1)}, {Name(0), Name(0)}}, 2, {}, true, {}});
  }
  static AdmissionRequest Request(const std::string& job, int pods, int priority) {
    AdmissionRequest request{
        .job = "ns/" + job, .priority = priority, .preempts = true, .since = kNow};
    for (int i = 0; i < pods; ++i) {
      request.pods.push_back(
          std::make_shared<const Json>(Pod(job + "-new-" + std::to_string(i), 1)));
    }
    request.sizes = {pods};
    return request;
  }
  Admission admission_;
};

TEST_F(WholeJobTest, ItsPodsAreAskedForTogetherAndItsSuccessorsStandBehindTheTaker) {
  const AdmissionRequest high = Request("high", 1, 5), again = Request("low", 2, 0);
  admission_.Ask(high, {});
  admission_.Pass(kNow);
  EXPECT_THAT(admission_.DemandsOn("ns/low"),
              ElementsAre(PodDemand{"low-1", "ns/high", 5, 1, true},
                          PodDemand{"low-0", "ns/high", 5, 1, true}));
  for (int i = 0; i < 2; ++i) Runs(i, true);
  admission_.RemoveHolding("ns/low");
  admission_.Pass(kNow);
  EXPECT_EQ(admission_.DemandsOn("ns/low").size(), 2u) << "they have yet to go";
  for (int i = 0; i < 2; ++i) admission_.capacity().RemovePod(Name(i));
  EXPECT_EQ(admission_.Ask(again, {}).fit, 0);
  admission_.Pass(kNow);
  EXPECT_EQ(admission_.Ask(high, {}).fit, 1);
  EXPECT_EQ(admission_.Ask(again, {}).fit, 0) << "it needs two";
  admission_.Withdraw("ns/high");
  admission_.Pass(kNow);
  EXPECT_EQ(admission_.Ask(again, {}).fit, 2);
}

TEST_F(WholeJobTest, WhoWaitsNoMoreTakesNothing) {
  admission_.Ask(Request("high", 1, 5), {});
  admission_.Pass(kNow);
  admission_.Withdraw("ns/high");
  EXPECT_THAT(admission_.DemandsOn("ns/low"), IsEmpty());
}

TEST_F(WholeJobTest, AJobThatWasPreemptedTakesNothingBack) {
  admission_.RemoveHolding("ns/low");
  for (int i = 0; i < 2; ++i) admission_.capacity().RemovePod(Name(i));
  admission_.capacity().SetPod(Pod("high-0", 1, "a"), "ns/high");
  admission_.SetHolding({"ns/high", 5, {{"high-0", "high-0"}}, 1, {}, true, {}});
  admission_.Ask(Request("low", 2, 0), {});
  admission_.Pass(kNow);
  EXPECT_THAT(admission_.DemandsOn("ns/high"), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::scheduler
