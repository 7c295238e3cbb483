#include "operator/scheduler/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/scheduler/testing/place_of.h"

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr Moment kBegin = Moment(std::chrono::hours(1));

Json Pod(const std::string& name, int gpus = 1) {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}}},
          {"spec",
           {{"containers",
             {{{"resources", {{"requests", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}}}};
}

// Jobs that wait for the GPUs of one node.
class AdmissionTest : public testing::Test {
 protected:
  void Gpus(int count) {
    admission_.capacity().SetNode(
        {{"metadata", {{"name", "a"}}},
         {"status",
          {{"allocatable", {{"nvidia.com/gpu", std::to_string(count)}, {"pods", "100"}}}}}});
  }
  // Requests `pods` pods; `least` of them are the smallest useful number.
  AdmissionRequest Request(const std::string& job, int pods, int least, int priority = 0,
                           int waited_seconds = 0) {
    AdmissionRequest request{.job = "ns/" + job,
                             .priority = priority,
                             .since = kBegin - std::chrono::seconds(waited_seconds)};
    for (int i = 0; i < pods; ++i) {
      request.pods.push_back(std::make_shared<const Json>(Pod(job + "-" + std::to_string(i))));
      if (i + 1 >= least) request.sizes.push_back(i + 1);
    }
    return request;
  }
  GangFit Ask(const AdmissionRequest& request) { return admission_.Ask(request, {}); }
  // Pods that existed before, of no job or of this one.
  void Occupy(const std::string& uid, int gpus, const std::string& job = "") {
    Json pod = Pod(uid, gpus);
    pod["metadata"]["uid"] = uid;
    pod["spec"]["nodeName"] = "a";
    admission_.capacity().SetPod(pod, job);
  }
  static constexpr int kLong = static_cast<int>(Admission::kPatience.count());
  Admission admission_;
};

TEST_F(AdmissionTest, AJobThatStandsAloneIsAnsweredAtOnce) {
  Gpus(3);
  EXPECT_EQ(Ask(Request("a", 4, 2)).fit, 3);
  EXPECT_EQ(Ask(Request("a", 4, 2)).fit, 3) << "asked again";
}

TEST_F(AdmissionTest, HalfAGangHoldsNothing) {
  Gpus(3);
  const GangFit fit = Ask(Request("a", 4, 4));
  EXPECT_EQ(fit.fit, 0);
  EXPECT_EQ(fit.tried, 3);
  EXPECT_NE(fit.why.find("Insufficient nvidia.com/gpu"), std::string::npos) << fit.why;
  EXPECT_TRUE(PlaceOf(&admission_.capacity(), Pod("other", 3)));
}

TEST_F(AdmissionTest, WhatIsGrantedIsHeldFromOthers) {
  Gpus(4);
  EXPECT_EQ(Ask(Request("a", 3, 3)).fit, 3);
  EXPECT_EQ(Ask(Request("b", 2, 2)).fit, 0);
  EXPECT_EQ(Ask(Request("c", 1, 1)).fit, 0) << "b stands in line: the pass decides";
  EXPECT_THAT(admission_.Pass(kBegin), UnorderedElementsAre("ns/c"));
  EXPECT_EQ(Ask(Request("c", 1, 1)).fit, 1);
}

TEST_F(AdmissionTest, PriorityComesFirstThenAge) {
  Gpus(1);
  Occupy("x", 1);
  Ask(Request("young", 1, 1, 0, 0));
  Ask(Request("old", 1, 1, 0, 60));
  Ask(Request("dear", 1, 1, 5, 0));
  EXPECT_THAT(admission_.Pass(kBegin), UnorderedElementsAre("ns/old", "ns/dear"))
      << "they learn that nothing fits; the first one knew";
  std::vector<std::string> order;
  for (int gpus = 2; gpus <= 4; ++gpus) {
    Gpus(gpus);
    const auto changed = admission_.Pass(kBegin);
    ASSERT_EQ(changed.size(), 1u);
    order.push_back(changed.front());
  }
  EXPECT_THAT(order, ElementsAre("ns/dear", "ns/old", "ns/young"));
}

TEST_F(AdmissionTest, EverybodyGetsTheLeastBeforeAnybodyGrows) {
  Gpus(1);
  Occupy("x", 1);
  Ask(Request("a", 4, 1, 0, 60));
  Ask(Request("b", 4, 2, 0, 0));
  admission_.Pass(kBegin);
  Gpus(5);
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("a", 4, 1, 0, 60)).fit, 2) << "its one, and the one that is left";
  EXPECT_EQ(Ask(Request("b", 4, 2, 0, 0)).fit, 2);
}

TEST_F(AdmissionTest, SmallJobsPassALargeOneUntilItHasWaitedLong) {
  Gpus(4);
  Occupy("x", 3, "ns/runs");
  const int patience = kLong;
  Ask(Request("large", 4, 4, 0, patience));
  Ask(Request("small", 1, 1));
  admission_.Pass(kBegin - std::chrono::seconds(1));
  EXPECT_EQ(Ask(Request("small", 1, 1)).fit, 1) << "backfill";
  admission_.Withdraw("ns/small");
  Ask(Request("next", 1, 1));
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("next", 1, 1)).fit, 0) << "kept for the large one";
  admission_.capacity().RemovePod("x");
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("large", 4, 4, 0, patience)).fit, 4);
  EXPECT_EQ(Ask(Request("next", 1, 1)).fit, 0);
}

TEST_F(AdmissionTest, NothingIsKeptForAJobThatOthersThanJobsKeepOut) {
  Gpus(4);
  Occupy("service", 1);
  Ask(Request("large", 4, 4, 0, kLong));
  Ask(Request("small", 1, 1));
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("small", 1, 1)).fit, 1) << "nobody knows when the service ends";
}

TEST_F(AdmissionTest, WhoHasTooFewPodsComesBeforeEverybodyElse) {
  Gpus(4);
  Occupy("short-0", 1, "ns/short");
  Occupy("short-1", 1, "ns/short");
  Occupy("x", 1);
  Ask(Request("large", 2, 2, 5, 2 * kLong));
  AdmissionRequest rest = Request("short", 1, 1);
  rest.state = GangState::kShort;
  Ask(rest);
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(rest).fit, 1) << "its two pods are of no use without the third";
  EXPECT_EQ(Ask(Request("large", 2, 2, 5, 2 * kLong)).fit, 0);
}

// A job that trained with four pods has lost one, and a larger job has waited for long.
class ReservationTest : public AdmissionTest {
 protected:
  void LetAJobWait(int needs) {
    for (int i = 0; i < 3; ++i) Occupy("runs-" + std::to_string(i), 1, "ns/runs");
    Ask(Request("large", needs, needs, 5, kLong));
    back_.state = GangState::kRuns;
    Ask(back_);
    admission_.Pass(kBegin);
  }
  AdmissionRequest back_ = Request("runs", 1, 1);
};

TEST_F(ReservationTest, DoesNotHoldUpTheJobWhoseEndItWaitsFor) {
  Gpus(4);
  LetAJobWait(4);
  EXPECT_EQ(Ask(back_).fit, 1) << "the large one fits when this one has ended, not before";
  EXPECT_FALSE(PlaceOf(&admission_.capacity(), Pod("other")));
}

TEST_F(ReservationTest, HoldsUpAJobThatWouldTakeWhatOthersMakeFree) {
  Gpus(8);
  for (int i = 0; i < 4; ++i) Occupy("other-" + std::to_string(i), 1, "ns/other");
  LetAJobWait(4);
  EXPECT_EQ(Ask(back_).fit, 0) << "the large one fits when the other has ended";
  for (int i = 0; i < 4; ++i) admission_.capacity().RemovePod("other-" + std::to_string(i));
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("large", 4, 4, 5, kLong)).fit, 4);
  EXPECT_EQ(Ask(back_).fit, 1);
}

TEST_F(AdmissionTest, WhatWasKeptForAJobIsGivenWhenThatIsWithdrawn) {
  Gpus(4);
  for (int i = 0; i < 2; ++i) Occupy("runs-" + std::to_string(i), 1, "ns/runs");
  Ask(Request("large", 4, 4, 0, kLong));
  admission_.Pass(kBegin);
  const std::vector<AdmissionRequest> small = {Request("s1", 1, 1), Request("s2", 1, 1)};
  for (const AdmissionRequest& job : small) Ask(job);
  admission_.Pass(kBegin);
  for (const AdmissionRequest& job : small) ASSERT_EQ(Ask(job).fit, 0) << "room is kept";
  while (admission_.IsPassDue()) admission_.Pass(kBegin);
  admission_.Withdraw("ns/large", {});
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kBegin);
  for (const AdmissionRequest& job : small) EXPECT_EQ(Ask(job).fit, 1);
}

TEST_F(AdmissionTest, ManyJobsThatCanNeverFitAreNoReasonToKeepNothingForOthers) {
  Gpus(4);
  for (int i = 0; i < 2; ++i) Occupy("runs-" + std::to_string(i), 1, "ns/runs");
  for (int i = 0; i < 20; ++i) Ask(Request("never-" + std::to_string(i), 5, 5, 0, 2 * kLong));
  Ask(Request("large", 4, 4, 0, kLong));
  Ask(Request("small", 1, 1));
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("small", 1, 1)).fit, 0) << "the large one needs what is free";
}

TEST_F(AdmissionTest, WhatIsLeftOfAGangThatIsMadeInSeveralLooksStaysItsOwn) {
  Gpus(5);
  EXPECT_EQ(Ask(Request("a", 4, 4)).fit, 4);
  Ask(Request("large", 2, 2, 9, kLong));
  AdmissionRequest rest = Request("a", 4, 4);
  rest.pods.erase(rest.pods.begin(), rest.pods.begin() + 2);
  rest.sizes = {2};
  rest.state = GangState::kShort;
  EXPECT_EQ(admission_.Ask(rest, {"ns/a-0", "ns/a-1"}).fit, 2);
  EXPECT_FALSE(PlaceOf(&admission_.capacity(), Pod("other", 2)));
}

TEST_F(AdmissionTest, WhatWasGrantedOnANodeThatIsGoneIsDecidedAnew) {
  Gpus(2);
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 2);
  admission_.capacity().RemoveNode("a");
  ASSERT_TRUE(admission_.IsPassDue());
  EXPECT_THAT(admission_.Pass(kBegin), ElementsAre("ns/a"));
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 0);
  EXPECT_EQ(admission_.capacity().held().size(), 0u);
  Gpus(2);
  ASSERT_TRUE(admission_.IsPassDue());
  EXPECT_THAT(admission_.Pass(kBegin), ElementsAre("ns/a"));
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 2);
}

TEST_F(AdmissionTest, OnANodeThatShrinksNoMoreIsHeldThanItHas) {
  Gpus(3);
  EXPECT_EQ(Ask(Request("a", 3, 1)).fit, 3);
  Gpus(2);
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("a", 3, 1)).fit, 2);
}

TEST_F(AdmissionTest, APodThatWaitsForTheSchedulerIsCountedWhenItsNodeGoes) {
  Gpus(1);
  EXPECT_EQ(Ask(Request("a", 1, 1)).fit, 1);
  Json pod = Pod("a-0");
  pod["metadata"]["uid"] = "a-0";
  admission_.capacity().SetPod(pod, "ns/a");
  admission_.Withdraw("ns/a", {"ns/a-0"});
  admission_.capacity().RemoveNode("a");
  Gpus(1);
  EXPECT_EQ(Ask(Request("b", 1, 1)).fit, 0) << "the scheduler will put a-0 there";
  admission_.capacity().RemovePod("a-0");
  admission_.Pass(kBegin);
  EXPECT_EQ(Ask(Request("b", 1, 1)).fit, 1);
}

TEST_F(AdmissionTest, OnlySizesOfUseAreGranted) {
  Gpus(6);
  AdmissionRequest request = Request("a", 8, 8);
  request.sizes = {2, 4, 8};
  EXPECT_EQ(Ask(request).fit, 4);
  EXPECT_TRUE(PlaceOf(&admission_.capacity(), Pod("other", 2))) << "the other two are free";
}

TEST_F(AdmissionTest, WhatIsNotTakenIsFreeAgain) {
  Gpus(2);
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 2);
  EXPECT_EQ(Ask(Request("b", 2, 2)).fit, 0);
  admission_.Withdraw("ns/a");
  ASSERT_TRUE(admission_.IsPassDue());
  EXPECT_THAT(admission_.Pass(kBegin), ElementsAre("ns/b"));
}

TEST_F(AdmissionTest, APlaceIsHeldUntilThePodRunsElsewhereOrIsGone) {
  Gpus(2);
  Ask(Request("a", 2, 2));
  for (const char* name : {"a-0", "a-1"}) {
    Json pod = Pod(name);
    pod["metadata"]["uid"] = name;
    admission_.capacity().SetPod(pod);
  }
  admission_.Withdraw("ns/a", {"ns/a-0", "ns/a-1"});
  EXPECT_EQ(Ask(Request("b", 1, 1)).fit, 0) << "they wait for the scheduler";
  Json pod = Pod("a-0");
  pod["metadata"]["uid"] = "a-0";
  pod["spec"]["nodeName"] = "a";
  admission_.capacity().SetPod(pod);
  admission_.capacity().RemovePod("a-1");
  EXPECT_EQ(Ask(Request("b", 2, 1)).fit, 1);
}

TEST_F(AdmissionTest, APodThatWasMadeAndIsGoneIsGrantedAnew) {
  Gpus(1);
  EXPECT_EQ(Ask(Request("a", 1, 1)).fit, 1);
  Json pod = Pod("a-0");
  pod["metadata"]["uid"] = "a-0";
  admission_.capacity().SetPod(pod);
  admission_.capacity().RemovePod("a-0");
  Occupy("x", 1);
  EXPECT_EQ(Ask(Request("a", 1, 1)).fit, 0) << "somebody else was quicker";
}

// A volume that is not there, say.
TEST_F(AdmissionTest, APodThatTheSchedulerGoesOnRefusingKeepsNoRoom) {
  Gpus(2);
  Json pod = Pod("others", 2);
  pod["metadata"]["uid"] = "others";
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  admission_.capacity().SetPod(pod);
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 0) << "it may be its turn";
  ASSERT_TRUE(admission_.IsPassDue());
  admission_.Pass(kBegin);
  EXPECT_EQ(admission_.look_again(), kBegin + std::chrono::seconds(60));
  admission_.Pass(kBegin + std::chrono::seconds(59));
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 0);
  EXPECT_THAT(admission_.Pass(kBegin + std::chrono::seconds(60)), ElementsAre("ns/a"));
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 2);
  EXPECT_EQ(admission_.look_again(), std::nullopt);
}

// A rule between pods that is not counted here, say, keeps the job's own pods off these nodes.
TEST_F(AdmissionTest, AJobsPodThatTheSchedulerGoesOnRefusingKeepsNoRoomEither) {
  Gpus(2);
  EXPECT_EQ(Ask(Request("a", 1, 1)).fit, 1);
  Json pod = Pod("a-0");
  pod["metadata"]["uid"] = "a-0";
  admission_.capacity().SetPod(pod, "ns/a");
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  admission_.capacity().SetPod(pod, "ns/a");
  admission_.Withdraw("ns/a", {"ns/a-0"});
  EXPECT_EQ(Ask(Request("b", 2, 2)).fit, 0);
  admission_.Pass(kBegin);
  EXPECT_EQ(admission_.look_again(), kBegin + std::chrono::seconds(60));
  EXPECT_THAT(admission_.Pass(kBegin + std::chrono::seconds(60)), ElementsAre("ns/b"));
  EXPECT_EQ(Ask(Request("b", 2, 2)).fit, 2);
}

// It names a scheduler that is not there, say.
TEST_F(AdmissionTest, APodOfWhichNoSchedulerSaysAnythingKeepsNoRoomForEver) {
  for (const std::string job : {"", "ns/a"}) {
    Gpus(1);
    Json pod = Pod("silent");
    pod["metadata"]["uid"] = "silent";
    admission_.capacity().SetPod(pod, job);
    EXPECT_EQ(Ask(Request("b", 1, 1)).fit, 0);
    admission_.Pass(kBegin);
    EXPECT_EQ(admission_.look_again(), kBegin + std::chrono::minutes(5));
    admission_.Pass(kBegin + std::chrono::seconds(299));
    EXPECT_EQ(Ask(Request("b", 1, 1)).fit, 0);
    EXPECT_THAT(admission_.Pass(kBegin + std::chrono::minutes(5)), ElementsAre("ns/b"));
    EXPECT_EQ(Ask(Request("b", 1, 1)).fit, 1);
    admission_.Withdraw("ns/b");
    admission_.capacity().RemovePod("silent");
  }
}

TEST_F(AdmissionTest, APodThatWasRefusedHasAPlaceAgainWhenItOrANodeHasChanged) {
  Json pod = Pod("others", 2);
  pod["metadata"]["uid"] = "others";
  const Json refused = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  int gpus = 2;
  for (const bool node_changes : {true, false}) {
    Gpus(gpus);
    pod["status"]["conditions"] = refused;
    admission_.capacity().SetPod(pod);
    for (const int seconds : {0, 60}) admission_.Pass(kBegin + std::chrono::seconds(seconds));
    EXPECT_EQ(admission_.capacity().held().size(), 0u);
    admission_.capacity().SetPod(pod);
    admission_.capacity().PlaceFloating();
    EXPECT_EQ(admission_.capacity().held().size(), 0u) << "nothing has changed";
    if (node_changes) {
      Gpus(++gpus);
    } else {
      pod["status"].erase("conditions");
      admission_.capacity().SetPod(pod);
    }
    admission_.capacity().PlaceFloating();
    EXPECT_EQ(admission_.capacity().held().size(), 1u);
    admission_.capacity().RemovePod("others");
  }
}

TEST_F(AdmissionTest, WhatAPodTurnsOutToTakeCounts) {
  Gpus(4);
  Ask(Request("a", 1, 1));
  Json pod = Pod("a-0", 3);
  pod["metadata"]["uid"] = "a-0";
  admission_.capacity().SetPod(pod);
  EXPECT_EQ(Ask(Request("b", 2, 1)).fit, 1);
}

TEST_F(AdmissionTest, AJobThatWaitsIsCountedByThePodsThatAreStored) {
  Gpus(2);
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 2);
  AdmissionRequest stored = Request("a", 2, 2);
  for (auto& pod : stored.pods) {
    pod = std::make_shared<const Json>(Pod((*pod)["metadata"]["name"], 2));
  }
  EXPECT_EQ(Ask(stored).fit, 0) << "each takes two, and not one as in the template";
  EXPECT_EQ(Ask(Request("a", 2, 2)).fit, 2) << "somebody has changed them back";
}

TEST_F(AdmissionTest, TheEndOfAnOlderPodOfTheNameFreesNothing) {
  Gpus(1);
  Ask(Request("a", 1, 1));
  admission_.capacity().RemovePod("older");
  EXPECT_FALSE(PlaceOf(&admission_.capacity(), Pod("other")));
}

TEST_F(AdmissionTest, WhereNobodyWaitsNoPassIsDue) {
  Gpus(3);
  Ask(Request("a", 2, 2));
  Occupy("x", 1);
  admission_.capacity().RemovePod("x");
  EXPECT_FALSE(admission_.IsPassDue());
  EXPECT_THAT(admission_.Pass(kBegin), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::scheduler
