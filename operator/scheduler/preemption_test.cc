// The decision which pods are given up for which job: by itself, and as part of the admission.
#include "operator/scheduler/preemption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/scheduler/admission.h"
#include "operator/scheduler/testing/preemption_case.h"
#include "operator/scheduler/whole_jobs.h"

namespace ringmaster::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;
using namespace scheduler::testing;  // NOLINT: the words of the tables

class PreemptTable : public ::testing::TestWithParam<Case> {};

TEST_P(PreemptTable, TakesWhatIsNeededAndLeavesAllAsItWas) {
  const Took took = Decide(GetParam());
  EXPECT_THAT(took.pods, UnorderedElementsAreArray(GetParam().taken));
  EXPECT_THAT(took.whole, IsEmpty());
}

const std::pair<std::string, int> kOnA = {"a", 1}, kOnB = {"b", 1};

INSTANTIATE_TEST_SUITE_P(
    Cases, PreemptTable,
    ::testing::Values(
        Case{"OnePodAboveTheLeast",
             {{"a", 3}},
             {{"low", 0, 2, {kOnA, kOnA, kOnA}}},
             1,
             1,
             {"low-2"}},
        Case{"NeverBelowTheLeast", {{"a", 3}}, {{"low", 0, 2, {kOnA, kOnA, kOnA}}}, 2, 1, kNo},
        Case{"NothingFromEquals", {{"a", 3}}, {{"even", 5, 1, {kOnA, kOnA, kOnA}}}, 1, 1, kNo},
        Case{"NothingFromTheMoreImportant",
             {{"a", 3}},
             {{"high", 9, 1, {kOnA, kOnA, kOnA}}},
             1,
             1,
             kNo},
        Case{"TheLowestPriorityFirst",
             {{"a", 4}},
             {{"mid", 3, 1, {kOnA, kOnA}}, {"low", 0, 1, {kOnA, kOnA}}},
             1,
             1,
             {"low-1"}},
        Case{"TheNextPriorityWhereThatIsNotEnough",
             {{"a", 4}},
             {{"low", 0, 1, {kOnA, kOnA}}, {"mid", 3, 1, {kOnA, kOnA}}},
             2,
             1,
             {"low-1", "mid-1"}},
        Case{"WhatIsFreeIsUsedFirst",
             {{"a", 4}},
             {{"low", 0, 1, {kOnA, kOnA, kOnA}}},
             2,
             1,
             {"low-2"}},
        Case{"TheFewestPods",
             {{"a", 2}, {"b", 2}},
             {{"one", 0, 0, {kOnA, kOnA}}, {"two", 0, 0, {{"b", 2}}}},
             1,
             2,
             {"two-0"}},
        Case{"TheLowestPriorityEvenIfThatIsMorePods",
             {{"a", 2}, {"b", 2}},
             {{"low", 0, 0, {kOnA, kOnA}}, {"mid", 1, 0, {{"b", 2}}}},
             1,
             2,
             {"low-0", "low-1"}},
        Case{"OnlyPodsOfANodeWhereItFitsThen",
             {{"a", 2}, {"b", 1}},
             {{"low", 0, 1, {kOnA, kOnA, kOnB}}},
             1,
             2,
             {"low-0", "low-1"}},
        Case{"PodsOnSeveralNodesWithinOneBudget",
             {{"a", 2}, {"b", 2}},
             {{"low", 0, 2, {kOnA, kOnA, kOnB, kOnB}}},
             2,
             1,
             {"low-2", "low-3"}},
        Case{"ALargePodThatMakesSmallOnesNeedless",
             {{"a", 4}},
             {{"low", 0, 0, {{"a", 3}, {"a", 1}}}},
             1,
             3,
             {"low-0"}},
        Case{"ADrainInProgressCounts",
             {{"a", 3}},
             {{"low", 0, 1, {kOnA, kOnA, kOnA}}},
             1,
             1,
             {},
             {"low-2"}},
        Case{"WhatLeavesIsNotEnough",
             {{"a", 3}},
             {{"low", 0, 1, {kOnA, kOnA, kOnA}}},
             2,
             1,
             {"low-1"},
             {"low-2"}},
        Case{"WhoWasAskedIsAskedAgain",
             {{"a", 4}},
             {{"low", 0, 1, {kOnA, kOnA, kOnA, kOnA}}},
             1,
             1,
             {"low-1"},
             {},
             {{"low-1", "low-1", "ns/low"}}},
        Case{"WhoWasAskedNeedlesslyIsLetBe",
             {{"a", 4}},
             {{"low", 0, 1, {kOnA, kOnA, kOnA}}},
             1,
             1,
             {},
             {},
             {{"low-2", "low-2", "ns/low"}}},
        Case{"WhoWasAskedCountsWithWhatIsAskedNow",
             {{"a", 4}},
             {{"low", 0, 2, {kOnA, kOnA, kOnA, kOnA}}},
             3,
             1,
             kNo,
             {},
             {{"low-3", "low-3", "ns/low"}}},
        Case{"APodIsTakenForOneJobAlone",
             {{"a", 3}},
             {{"low", 0, 1, {kOnA, kOnA, kOnA}}},
             3,
             1,
             kNo,
             {},
             {},
             {"low-2"}},
        Case{"WithAllowedSizesDownToOne",
             {{"a", 8}},
             {{"low", 0, 2, {kOnA, kOnA, kOnA, kOnA, kOnA, kOnA, kOnA, kOnA}, {2, 4, 8}}},
             3,
             1,
             {"low-7", "low-6", "low-5", "low-4"}}),
    [](const auto& info) { return info.param.name; });

TEST(PreemptTest, APodThatHangsIsNotCountedOn) {
  Capacity capacity;
  capacity.SetNode(Node("a", 2));
  capacity.SetPod(Pod("low-0", 1, "a"), "ns/low", kNow);
  capacity.SetPod(Pod("low-1", 1, "a"), "ns/low");
  const Holdings holdings = {{"ns/low", {"ns/low", 0, {{"low-1", "low-1"}}, 0, {}}}};
  const auto pod = std::make_shared<const Json>(Pod("waits-0", 1));
  const Need need{"ns/waits", 5, {pod}, {capacity.shapes().Of(*pod)}};
  const auto soon = Preempt({&capacity, need, holdings, {}, {}, kNow});
  ASSERT_TRUE(soon);
  EXPECT_THAT(soon->taken, IsEmpty());
  ASSERT_TRUE(soon->late_at);
  const auto late = Preempt({&capacity, need, holdings, {}, {}, *soon->late_at});
  ASSERT_TRUE(late);
  EXPECT_THAT(late->taken, ElementsAre(TakenPod{"low-1", "low-1", "ns/low"}));
}

// A node of four GPUs, all used by a job of low priority.
class PreemptionTest : public ::testing::Test {
 protected:
  PreemptionTest() {
    admission_.capacity().SetNode(Node("a", 4));
    for (int i = 0; i < 4; ++i) Runs(i);
    Holds({3, 2, 1, 0});
  }
  void Runs(int i, bool leaves = false) {
    admission_.capacity().SetPod(Pod(Name(i), 1, "a"), "ns/low",
                                 leaves ? std::optional(kNow) : std::nullopt);
  }
  static std::string Name(int i) { return "low-" + std::to_string(i); }
  // `given`: pods that are about to leave.
  void Holds(const std::vector<int>& indexes, const std::vector<int>& given = {}) {
    Holding holding{"ns/low", 0, {}, 2, {}};
    for (const int i : indexes) holding.pods.push_back({Name(i), Name(i)});
    for (const int i : given) holding.pods.push_back({Name(i), Name(i), false});
    admission_.SetHolding(holding);
  }
  static AdmissionRequest Request(const std::string& job, int pods, int least, int priority,
                                  bool preempts = true) {
    AdmissionRequest request{
        .job = "ns/" + job, .priority = priority, .preempts = preempts, .since = kNow};
    for (int i = 0; i < pods; ++i) {
      request.pods.push_back(std::make_shared<const Json>(Pod(job + "-" + std::to_string(i), 1)));
      if (i + 1 >= least) request.sizes.push_back(i + 1);
    }
    return request;
  }
  // Requests one pod of a job with priority 5.
  static AdmissionRequest LacksOne(GangState state) {
    AdmissionRequest request = Request("high", 1, 1, 5);
    request.state = state;
    return request;
  }
  GangFit Ask(const AdmissionRequest& request) { return admission_.Ask(request, {}); }
  std::vector<std::string> Demanded() {
    std::vector<std::string> uids;
    for (const PodDemand& demand : admission_.DemandsOn("ns/low")) uids.push_back(demand.uid);
    return uids;
  }
  // As in the operator: the pod is asked to leave, goes, and its replacement stands in line.
  void Leave(int i, const std::vector<int>& left) {
    Runs(i, true);
    Holds(left);
    admission_.Pass(kNow);
  }
  AdmissionRequest Back(int pods) {
    AdmissionRequest back = Request("low", 4, 1, 0);
    back.pods.erase(back.pods.begin(), back.pods.end() - pods);
    back.sizes.resize(static_cast<std::size_t>(pods));
    back.state = GangState::kRuns;
    return back;
  }
  Admission admission_;
};

TEST_F(PreemptionTest, BothJobsLearnOfIt) {
  EXPECT_EQ(Ask(Request("high", 4, 2, 5)).fit, 0);
  ASSERT_TRUE(admission_.IsPassDue()) << "though nobody else stands in line";
  EXPECT_THAT(admission_.Pass(kNow), UnorderedElementsAre("ns/high", "ns/low"));
  EXPECT_THAT(admission_.DemandsOn("ns/low"),
              UnorderedElementsAre(PodDemand{"low-3", "ns/high", 5, 2},
                                   PodDemand{"low-2", "ns/high", 5, 2}));
  EXPECT_THAT(
      Ask(Request("high", 4, 2, 5)).leavers,
      UnorderedElementsAre(GangFit::Leaver{"ns/low", "low-3"}, GangFit::Leaver{"ns/low", "low-2"}));
  EXPECT_THAT(admission_.Pass(kNow), IsEmpty()) << "nothing has changed";
}

TEST_F(PreemptionTest, WhatWasTakenIsNotGrownBackWhileTheTakerWaits) {
  const AdmissionRequest high = Request("high", 4, 2, 5);
  Ask(high);
  admission_.Pass(kNow);
  Leave(3, {2, 1, 0});
  EXPECT_EQ(Ask(Back(1)).fit, 0);
  admission_.capacity().RemovePod("low-3");
  Ask(Request("small", 1, 1, 0));
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(Back(1)).fit, 0) << "one is free, and it is for the job that needs two";
  EXPECT_EQ(Ask(Request("small", 1, 1, 0)).fit, 0);
  EXPECT_THAT(Demanded(), ElementsAre("low-2")) << "and no other one";
  EXPECT_EQ(admission_.capacity().held().size(), 0u) << "kept in the pass alone";
  Leave(2, {1, 0});
  admission_.capacity().RemovePod("low-2");
  Ask(Back(2));
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(high).fit, 2);
  EXPECT_THAT(Ask(high).leavers, IsEmpty());
  EXPECT_THAT(Demanded(), IsEmpty()) << "it may grow no further at the cost of others";
  EXPECT_EQ(Ask(Back(2)).fit, 0);
  admission_.Withdraw("ns/high");
  admission_.Withdraw("ns/small");
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(Back(2)).fit, 2) << "the other one has ended";
}

TEST_F(PreemptionTest, AJobThatHasTooFewPodsDoesNotTakeWhatLeavesForAnother) {
  Ask(Request("high", 2, 2, 5));
  admission_.Pass(kNow);
  Leave(3, {2, 1, 0});
  AdmissionRequest few = Request("few", 1, 1, 0);
  few.state = GangState::kShort;
  Ask(few);
  admission_.capacity().RemovePod("low-3");
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(few).fit, 0);
  few.priority = 9;
  Ask(few);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(few).fit, 1) << "a more important one does";
}

TEST_F(PreemptionTest, AJobWhoseClassSaysNeverTakesNothing) {
  Ask(Request("high", 2, 2, 5, false));
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), IsEmpty());
}

TEST_F(PreemptionTest, AJobThatRunsDoesNotGrowAtTheCostOfOthers) {
  Ask(LacksOne(GangState::kRuns));
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), IsEmpty());
}

TEST_F(PreemptionTest, AJobThatHasTooFewPodsToTrainTakesWhatItLacks) {
  Ask(LacksOne(GangState::kShort));
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), ElementsAre("low-3"));
}

TEST_F(PreemptionTest, WhoWaitsNoMoreTakesNothing) {
  Ask(Request("high", 2, 2, 5));
  admission_.Pass(kNow);
  admission_.Withdraw("ns/high");
  EXPECT_THAT(Demanded(), IsEmpty());
}

TEST_F(PreemptionTest, WhenMoreIsFreeLessIsTaken) {
  Ask(Request("high", 2, 2, 5));
  admission_.Pass(kNow);
  admission_.capacity().SetNode(Node("a", 5));
  admission_.Pass(kNow);
  EXPECT_EQ(Demanded().size(), 1u);
}

TEST_F(PreemptionTest, TwoJobsTakeDifferentPods) {
  Ask(Request("high", 1, 1, 5));
  Ask(Request("higher", 1, 1, 9));
  Ask(Request("third", 1, 1, 3));
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), UnorderedElementsAre("low-3", "low-2")) << "and no more: its least is 2";
  EXPECT_THAT(Ask(Request("third", 1, 1, 3)).leavers, IsEmpty());
  for (const int i : {3, 2}) admission_.capacity().RemovePod(Name(i));
  Holds({1, 0});
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(Request("high", 1, 1, 5)).fit, 1);
  EXPECT_EQ(Ask(Request("higher", 1, 1, 9)).fit, 1);
}

TEST_F(PreemptionTest, WhatIsOfferedAsGivenIsCountedOnAndNothingElseIsTaken) {
  Ask(Request("high", 2, 2, 5));
  admission_.Pass(kNow);
  Holds({1, 0}, {3, 2});
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), UnorderedElementsAre("low-3", "low-2"));
  for (const int i : {3, 2}) Runs(i, true);
  ASSERT_TRUE(admission_.IsPassDue()) << "from now on it is known by when they go";
  admission_.Pass(kNow);
  ASSERT_TRUE(admission_.look_again());
  EXPECT_THAT(Demanded(), UnorderedElementsAre("low-3", "low-2"));
  admission_.Pass(*admission_.look_again());
  EXPECT_THAT(Demanded(), IsEmpty()) << "they hang, and there is nothing more to spare";
}

TEST_F(PreemptionTest, APodThatItsJobNeedsByNowIsNotCountedOn) {
  Ask(Request("high", 2, 2, 5));
  admission_.Pass(kNow);
  ASSERT_THAT(Demanded(), UnorderedElementsAre("low-3", "low-2"));
  admission_.capacity().RemovePod("low-1");
  admission_.capacity().SetNode(Node("a", 3));  // with its GPU
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), IsEmpty()) << "three are left, and it keeps two";
}

TEST_F(PreemptionTest, AJobThatIsRebuiltIsAskedForNothingAnyMore) {
  Ask(Request("high", 1, 1, 5));
  admission_.Pass(kNow);
  ASSERT_FALSE(admission_.IsPassDue());
  admission_.RemoveHolding("ns/low");
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), IsEmpty());
}

TEST_F(PreemptionTest, AJobThatTrainsByNowTakesNothingAnyMore) {
  Ask(LacksOne(GangState::kShort));
  admission_.Pass(kNow);
  ASSERT_THAT(Demanded(), ElementsAre("low-3"));
  Ask(LacksOne(GangState::kRuns));
  EXPECT_THAT(Demanded(), IsEmpty());
}

TEST_F(PreemptionTest, ManyThatCanNotHaveEnoughKeepNobodyFromTakingPods) {
  Ask(Request("modest", 1, 1, 5));
  admission_.Pass(kNow);
  for (int i = 0; i < 40; ++i) {
    AdmissionRequest vast = Request("vast-" + std::to_string(i), 3, 3, 9);
    vast.state = GangState::kShort;
    Ask(vast);
  }
  Ask(Request("late", 1, 1, 5));
  std::set<std::string> takers;
  int passes = 0;
  for (; admission_.IsPassDue() && passes < 20; ++passes) {
    admission_.Pass(kNow);
    takers.clear();
    for (const PodDemand& demand : admission_.DemandsOn("ns/low")) takers.insert(demand.job);
    EXPECT_EQ(takers.count("ns/modest"), 1u) << "what has begun goes on, pass " << passes;
  }
  EXPECT_THAT(takers, UnorderedElementsAre("ns/modest", "ns/late"));
  EXPECT_LT(passes, 20) << "then all have been tried";
}

// The first job counts on a pod that leaves for the second one, and then there is no room for the
// second.
TEST_F(PreemptionTest, WhatLeavesForNobodyAnyMoreIsAskedForByWhoCountsOnIt) {
  Ask(Request("second", 1, 1, 5));
  admission_.Pass(kNow);
  ASSERT_THAT(Demanded(), ElementsAre("low-3"));
  admission_.capacity().RemovePod("low-1");  // no further pod can be spared
  admission_.capacity().SetNode(Node("a", 3));
  AdmissionRequest first = Request("first", 1, 1, 9);
  first.state = GangState::kShort;
  Ask(first);
  int passes = 0;
  for (; admission_.IsPassDue() && passes < 20; ++passes) admission_.Pass(kNow);
  EXPECT_LT(passes, 20);
  EXPECT_THAT(admission_.DemandsOn("ns/low"), ElementsAre(PodDemand{"low-3", "ns/first", 9, 1}));
}

TEST_F(PreemptionTest, WhatLeavesForOneThatWaitsNoMoreIsAskedForByWhoCountsOnIt) {
  Ask(Request("second", 1, 1, 5));
  admission_.Pass(kNow);
  Ask(Request("third", 1, 1, 3));
  admission_.Pass(kNow);
  admission_.Withdraw("ns/second");
  ASSERT_TRUE(admission_.IsPassDue());
}

TEST_F(PreemptionTest, AJobThatBeginsToTrainCanGive) {
  admission_.RemoveHolding("ns/low");
  Ask(Request("high", 1, 1, 5));
  admission_.Pass(kNow);
  EXPECT_FALSE(admission_.IsPassDue());
  Holds({3, 2, 1, 0});
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kNow);
  EXPECT_THAT(Demanded(), ElementsAre("low-3"));
}

TEST_F(PreemptionTest, APodThatDoesNotGoMakesAPassDue) {
  Ask(Request("high", 1, 1, 5));
  admission_.Pass(kNow);
  EXPECT_FALSE(admission_.look_again());
  Leave(3, {2, 1, 0});
  admission_.LookAgain();
  admission_.Pass(kNow);
  ASSERT_TRUE(admission_.look_again());
  EXPECT_THAT(Demanded(), ElementsAre("low-3"));
  admission_.Pass(*admission_.look_again());
  EXPECT_THAT(Demanded(), ::testing::Contains("low-2")) << "another one is taken";
}

}  // namespace
}  // namespace ringmaster::scheduler
