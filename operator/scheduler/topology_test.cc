// Jobs whose pods have to be, or want to be, on nodes with the same value of a label.
#include "operator/scheduler/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/scheduler/admission.h"

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Moment kNow = Moment(std::chrono::hours(1));
constexpr char kRack[] = "example.com/rack";

Json Pod(const std::string& name, int gpus = 1) {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}}},
          {"spec",
           {{"containers",
             {{{"resources", {{"requests", {{"example.com/gpu", std::to_string(gpus)}}}}}}}}}}};
}

class TopologyTest : public testing::Test {
 protected:
  // A node of a rack; "": it has no rack label.
  void Node(const std::string& name, const std::string& rack, int gpus) {
    Json node = {{"metadata", {{"name", name}, {"labels", Json::object()}}},
                 {"status",
                  {{"allocatable", {{"example.com/gpu", std::to_string(gpus)}, {"pods", "100"}}}}}};
    if (!rack.empty()) node["metadata"]["labels"][kRack] = rack;
    admission_.capacity().SetNode(node);
  }
  AdmissionRequest Request(const std::string& job, int pods, int least, bool required) {
    AdmissionRequest request{
        .job = "ns/" + job, .since = kNow, .near = {.label = kRack, .required = required}};
    for (int i = 0; i < pods; ++i) {
      request.pods.push_back(std::make_shared<const Json>(Pod(job + "-" + std::to_string(i))));
      if (i + 1 >= least) request.sizes.push_back(i + 1);
    }
    return request;
  }
  // A running pod, with its resources taken.
  void Runs(const std::string& name, const std::string& node, int gpus = 1,
            const std::string& job = "") {
    Json pod = Pod(name, gpus);
    pod["metadata"]["uid"] = name;
    pod["spec"]["nodeName"] = node;
    admission_.capacity().SetPod(pod, job);
  }
  GangFit Ask(const AdmissionRequest& request) { return admission_.Ask(request, {}); }
  // The number of free GPUs on the node, without held places.
  int Free(const std::string& node) {
    return static_cast<int>(admission_.capacity().nodes().FreeOn(node, "example.com/gpu"));
  }

  Admission admission_;
};

TEST_F(TopologyTest, PodsThatHaveToBeTogetherAreCountedInOneDomain) {
  Node("a1", "a", 2);
  Node("b1", "b", 2);
  Node("b2", "b", 1);
  const GangFit fit = Ask(Request("j", 4, 3, true));
  EXPECT_EQ(fit.fit, 3);
  EXPECT_EQ(fit.domain, "b");
  EXPECT_EQ(Free("a1"), 2);
  EXPECT_EQ(Free("b1") + Free("b2"), 0);
}

TEST_F(TopologyTest, WhereNoDomainHasRoomTheyWaitThoughTheNodesWouldDo) {
  Node("a1", "a", 2);
  Node("b1", "b", 2);
  const GangFit fit = Ask(Request("j", 3, 3, true));
  EXPECT_EQ(fit.fit, 0);
  EXPECT_EQ(fit.tried, 2);
  EXPECT_THAT(fit.why, HasSubstr("1 Insufficient example.com/gpu"));
  EXPECT_EQ(Free("a1") + Free("b1"), 4);
}

TEST_F(TopologyTest, TheSmallestDomainThatHasRoomForAllIsChosen) {
  Node("a1", "a", 8);
  Node("b1", "b", 3);
  Node("c1", "c", 2);
  EXPECT_EQ(Ask(Request("j", 3, 1, true)).domain, "b");
  EXPECT_EQ(Free("b1"), 0);
}

TEST_F(TopologyTest, ANodeWithoutTheLabelIsInNoDomain) {
  Node("x", "", 8);
  const GangFit fit = Ask(Request("j", 2, 1, true));
  EXPECT_EQ(fit.fit, 0);
  EXPECT_EQ(fit.domain, "");
  EXPECT_THAT(fit.why, HasSubstr("node affinity/selector"));
  Node("a1", "a", 1);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(Request("j", 2, 1, true)).fit, 1);
}

TEST_F(TopologyTest, WhoWouldRatherBeApartThanWaitIsTogetherWhereThatIsPossible) {
  Node("a1", "a", 2);
  Node("b1", "b", 3);
  const GangFit together = Ask(Request("j", 3, 3, false));
  EXPECT_EQ(together.domain, "b");
  EXPECT_EQ(Free("a1"), 2);
  admission_.Withdraw("ns/j");

  const GangFit apart = Ask(Request("k", 5, 4, false));
  EXPECT_EQ(apart.fit, 5);
  EXPECT_EQ(apart.domain, "");
}

TEST_F(TopologyTest, WhatDoesNotFitBesideTheOthersMayBeElsewhereIfTogetherIsOnlyAWish) {
  Node("a1", "a", 2);
  Node("b1", "b", 3);
  const GangFit fit = Ask(Request("j", 4, 2, false));
  EXPECT_EQ(fit.fit, 4);
  EXPECT_EQ(fit.domain, "b");
  EXPECT_EQ(Free("a1"), 1);
  EXPECT_EQ(Free("b1"), 0);
}

TEST_F(TopologyTest, LaterPodsGoWhereTheOthersAre) {
  Node("a1", "a", 8);
  Node("b1", "b", 2);
  Runs("j-0", "b1", 1, "ns/j");
  AdmissionRequest more = Request("j", 2, 1, true);
  more.state = GangState::kRuns;
  more.near.domain = "b";
  EXPECT_EQ(Ask(more).fit, 1);
  EXPECT_EQ(Free("a1"), 8);
}

TEST_F(TopologyTest, WhatWasGrantedIsKeptWhenTheJobAsksForMore) {
  Node("a1", "a", 4);
  Node("b1", "b", 2);
  EXPECT_EQ(Ask(Request("j", 2, 2, true)).domain, "b");
  Node("c1", "c", 2);
  const GangFit more = Ask(Request("j", 3, 2, true));
  EXPECT_EQ(more.fit, 2) << "the two stay where they are counted";
  EXPECT_EQ(more.domain, "b");
  EXPECT_EQ(Free("a1"), 4);
  EXPECT_EQ(Free("c1"), 2);
}

TEST_F(TopologyTest, TheDomainIsChosenAnewWhileNothingIsGranted) {
  Node("a1", "a", 2);
  Node("b1", "b", 3);
  Runs("x", "b1", 2);
  EXPECT_EQ(Ask(Request("j", 3, 3, true)).fit, 0);
  admission_.capacity().RemovePod("x");
  EXPECT_THAT(admission_.Pass(kNow), ElementsAre("ns/j"));
  const GangFit fit = Ask(Request("j", 3, 3, true));
  EXPECT_EQ(fit.fit, 3);
  EXPECT_EQ(fit.domain, "b");
}

// One rack is too small for the job, even if it were empty.
TEST_F(TopologyTest, ItWaitsForADomainThatCanHaveRoomForItAndIsReservedRoomThere) {
  Node("a1", "a", 3);
  Node("b1", "b", 4);
  for (const char* name : {"x", "y", "z"}) Runs(name, "b1", 1, "ns/other");
  AdmissionRequest large = Request("large", 4, 4, true);
  large.since = kNow - Admission::kPatience;
  const GangFit fit = Ask(large);
  EXPECT_EQ(fit.fit, 0);
  EXPECT_EQ(fit.domain, "b");
  AdmissionRequest small = Request("small", 4, 1, true);
  small.near = {};
  (void)Ask(small);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(small).fit, 3) << "all of a, and nothing of b";
  EXPECT_EQ(Free("b1"), 1);
  for (const char* name : {"x", "y", "z"}) admission_.capacity().RemovePod(name);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(large).fit, 4);
}

TEST_F(TopologyTest, PodsOfLessImportantJobsLeaveInADomainThatIsLargeEnoughAndInNoOther) {
  Node("a1", "a", 1);
  Node("b1", "b", 4);
  Node("c1", "c", 4);
  const auto runs = [&](const std::string& job, const std::string& node, int pods) {
    Holding holding{.job = "ns/" + job, .least = 1};
    for (int i = 0; i < pods; ++i) {
      const std::string name = job + "-" + std::to_string(i);
      Runs(name, node, 1, "ns/" + job);
      holding.pods.push_back({name, name});
    }
    admission_.SetHolding(std::move(holding));
  };
  runs("in-a", "a1", 1);
  runs("in-b", "b1", 4);
  runs("in-c", "c1", 4);
  AdmissionRequest high = Request("high", 3, 3, true);
  high.priority = 5;
  high.preempts = true;
  EXPECT_EQ(Ask(high).fit, 0);
  admission_.Pass(kNow);
  const GangFit fit = Ask(high);
  ASSERT_EQ(fit.leavers.size(), 3u) << fit.domain;
  EXPECT_EQ(fit.domain, "b");
  // One pod has gone, and meanwhile another rack has more room: the pods that leave are still
  // enough.
  admission_.capacity().RemovePod(fit.leavers.front().pod);
  for (const char* pod : {"in-c-1", "in-c-2"}) admission_.capacity().RemovePod(pod);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(high).domain, "b");
  EXPECT_TRUE(admission_.DemandsOn("ns/in-c").empty());
  // The job moves only if there is enough room elsewhere.
  admission_.capacity().RemovePod("in-c-3");
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(high).domain, "c");
  EXPECT_EQ(Ask(high).fit, 3);
  EXPECT_TRUE(admission_.DemandsOn("ns/in-b").empty());
}

TEST_F(TopologyTest, AskedAgainTheAnswerIsTheSame) {
  Node("a1", "a", 1);
  Node("b1", "b", 2);
  EXPECT_EQ(Ask(Request("j", 3, 2, true)).fit, 2);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(Request("j", 3, 2, true)).fit, 2);
  EXPECT_FALSE(admission_.IsPassDue());
  EXPECT_THAT(admission_.Pass(kNow), IsEmpty());
}

TEST_F(TopologyTest, AJobThatWaitsForADomainIsReservedRoomInOne) {
  Node("a1", "a", 3);
  Runs("other-0", "a1", 1, "ns/other");
  AdmissionRequest large = Request("large", 3, 3, true);
  large.since = kNow - Admission::kPatience;
  EXPECT_EQ(Ask(large).fit, 0);
  AdmissionRequest small = Request("small", 1, 1, true);
  EXPECT_FALSE(Ask(small).decided);
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(small).fit, 0) << "what is free is kept for the large one";
  admission_.capacity().RemovePod("other-0");
  admission_.Pass(kNow);
  EXPECT_EQ(Ask(large).fit, 3);
}

}  // namespace
}  // namespace ringmaster::scheduler
