// Jobs that lack room call for nodes: which of them, when, and how many at a time.
#include "operator/scheduler/node_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/scheduler/admission.h"

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Moment kBegin = Moment(std::chrono::hours(1));
constexpr std::chrono::seconds kAfter{30};
constexpr std::chrono::seconds kLong{3600};  // far more than any patience

Json Pod(const std::string& name) {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", name}}},
          {"spec", {{"containers", {{{"resources", {{"requests", {{"nvidia.com/gpu", "1"}}}}}}}}}}};
}

class NodeCallsTest : public testing::Test {
 protected:
  NodeCallsTest() {
    admission_.SetNodeCallRules({.calls = true, .after = kAfter, .jobs_at_once = 1});
    Gpus("a", 4);
  }
  void Gpus(const std::string& node, int count, Json labels = Json::object()) {
    admission_.capacity().SetNode(
        {{"metadata", {{"name", node}, {"labels", std::move(labels)}}},
         {"status",
          {{"allocatable", {{"nvidia.com/gpu", std::to_string(count)}, {"pods", "100"}}}}}});
  }
  // Pods of a job that run on node a.
  void Occupy(const std::string& job, int pods) {
    for (int i = 0; i < pods; ++i) {
      Json pod = Pod(job + "-" + std::to_string(i));
      pod["spec"]["nodeName"] = "a";
      admission_.capacity().SetPod(pod, "ns/" + job);
    }
  }
  // Requests `pods` pods, all of which are needed. Jobs are ordered by their names.
  static AdmissionRequest Request(const std::string& job, int pods) {
    AdmissionRequest request{.job = "ns/" + job, .since = kBegin, .sizes = {pods}};
    for (int i = 0; i < pods; ++i) {
      request.pods.push_back(std::make_shared<const Json>(Pod(job + "-" + std::to_string(i))));
    }
    return request;
  }
  void Ask(const AdmissionRequest& request) {
    asked_[request.job] = request;
    (void)admission_.Ask(request, {});
  }
  // The jobs that may call now.
  std::vector<std::string> CallersAt(std::chrono::seconds later) {
    admission_.LookAgain();
    (void)admission_.Pass(kBegin + later);
    std::vector<std::string> callers;
    for (const auto& [job, request] : asked_) {
      if (admission_.Ask(request, {}).calls_for_nodes) callers.push_back(job);
    }
    return callers;
  }
  std::map<std::string, AdmissionRequest> asked_;
  Admission admission_;
};

TEST_F(NodeCallsTest, AJobCallsWhenItHasLackedRoomForAWhile) {
  Ask(Request("a", 5));
  ASSERT_TRUE(admission_.IsPassDue()) << "somebody has to see since when";
  EXPECT_THAT(CallersAt(std::chrono::seconds(0)), IsEmpty());
  EXPECT_EQ(admission_.look_again(), kBegin + kAfter);
  EXPECT_THAT(CallersAt(kAfter - std::chrono::seconds(1)), IsEmpty());
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/a"));
  EXPECT_EQ(admission_.look_again(), std::nullopt);
}

TEST_F(NodeCallsTest, NobodyCallsWhereNoAutoscalerHears) {
  admission_.SetNodeCallRules({});
  Ask(Request("a", 5));
  EXPECT_THAT(CallersAt(std::chrono::seconds(0)), IsEmpty());
  EXPECT_THAT(CallersAt(kLong), IsEmpty());
}

TEST_F(NodeCallsTest, AJobForWhichThereIsRoomDoesNotCall) {
  Ask(Request("a", 4));
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kLong), IsEmpty());
}

TEST_F(NodeCallsTest, AJobThatTrainsDoesNotCallForItsGrowth) {
  AdmissionRequest request = Request("a", 5);
  request.state = GangState::kRuns;
  Ask(request);
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kLong), IsEmpty());
}

TEST_F(NodeCallsTest, AJobThatWasRefusedLeavesItsTurnToOthers) {
  for (const char* job : {"a", "b"}) Ask(Request(job, 5));
  (void)CallersAt(std::chrono::seconds(0));
  ASSERT_THAT(CallersAt(kAfter), ElementsAre("ns/a"));
  AdmissionRequest refused = Request("a", 5);
  refused.may_call = false;
  Ask(refused);
  ASSERT_TRUE(admission_.IsPassDue());
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/b"));
  Ask(Request("a", 5));
  EXPECT_THAT(CallersAt(kLong), ElementsAre("ns/b"));
  refused = Request("b", 5);
  refused.may_call = false;
  Ask(refused);
  EXPECT_THAT(CallersAt(kLong), ElementsAre("ns/a"));
}

TEST_F(NodeCallsTest, AsManyAsMayCallAtATimeAndTheOthersInTheirTurn) {
  for (const char* job : {"a", "b", "c"}) Ask(Request(job, 5));
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/a"));
  EXPECT_THAT(CallersAt(kLong), ElementsAre("ns/a")) << "it was told, and may have begun";
  admission_.SetCalling("ns/a", true);
  admission_.Withdraw("ns/a", {"ns/a-0"});
  asked_.erase("ns/a");
  EXPECT_THAT(CallersAt(kLong), IsEmpty());
  admission_.SetCalling("ns/a", false);
  EXPECT_TRUE(admission_.IsPassDue()) << "it is another one's turn";
  EXPECT_THAT(CallersAt(kLong), ElementsAre("ns/b"));
  admission_.SetNodeCallRules({.calls = true, .after = kAfter, .jobs_at_once = 2});
  EXPECT_THAT(CallersAt(kLong), ElementsAre("ns/b", "ns/c"));
}

TEST_F(NodeCallsTest, WhoHasCalledInVainCallsAloneAndIsPassedByNobody) {
  admission_.SetNodeCallRules({.calls = true, .after = kAfter, .jobs_at_once = 3});
  for (const char* job : {"a", "b", "c"}) {
    AdmissionRequest request = Request(job, 5);
    request.calls_alone = job == std::string("b");
    Ask(request);
  }
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/a"));
  admission_.Withdraw("ns/a");
  asked_.erase("ns/a");
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/b"));
  admission_.SetCalling("ns/b", true, true);
  admission_.Withdraw("ns/b");
  asked_.erase("ns/b");
  EXPECT_THAT(CallersAt(kAfter), IsEmpty());
  admission_.SetCalling("ns/b", false);
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/c"));
}

// No node has the label, so the job can't call, now or alone.
TEST_F(NodeCallsTest, WhoCanNotCallKeepsNobodyFromIt) {
  admission_.SetNodeCallRules({.calls = true, .after = kAfter, .jobs_at_once = 2});
  admission_.SetCalling("ns/other", true);
  AdmissionRequest request = Request("a", 5);
  request.calls_alone = true;
  request.near = {.label = "rack", .required = true};
  Ask(request);
  Ask(Request("b", 5));
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/b"));
}

TEST_F(NodeCallsTest, WhoHoldsPodsOfNoUseAloneWaitsForNoTurn) {
  admission_.SetCalling("ns/other", true);
  AdmissionRequest request = Request("a", 5);
  request.state = GangState::kShort;
  Ask(request);
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/a"));
}

// a waits for four pods, and has waited so long that three places are reserved for it; b could use
// these.
TEST_F(NodeCallsTest, AJobDoesNotCallForRoomThatIsKeptForAnother) {
  Occupy("runs", 1);
  admission_.SetCalling("ns/other", true);  // so that a has no turn
  Ask(Request("a", 4));
  Ask(Request("b", 3));
  (void)CallersAt(kLong);
  EXPECT_THAT(CallersAt(kLong + kAfter), IsEmpty());
  admission_.SetCalling("ns/other", false);
  admission_.SetNodeCallRules({.calls = true, .after = kAfter, .jobs_at_once = 2});
  EXPECT_THAT(CallersAt(kLong + kAfter), ElementsAre("ns/a"))
      << "with its pods Pending nothing is kept for it any more";
}

TEST_F(NodeCallsTest, AJobDoesNotCallForRoomThatIsAboutToBeFree) {
  constexpr Moment kGone = kBegin + kLong;
  Occupy("runs", 4);
  Ask(Request("a", 2));
  (void)CallersAt(std::chrono::seconds(0));
  for (const char* name : {"runs-0", "runs-1"}) {
    Json pod = Pod(name);
    pod["spec"]["nodeName"] = "a";
    admission_.capacity().SetPod(pod, "ns/runs", kGone);
  }
  EXPECT_THAT(CallersAt(kAfter), IsEmpty());
  EXPECT_EQ(admission_.look_again(), kGone);
  EXPECT_THAT(CallersAt(kLong), ElementsAre("ns/a")) << "they should have gone, and hang";
}

TEST_F(NodeCallsTest, WhoGetsRoomFromLessImportantJobsDoesNotCallAndNobodyBeginsTo) {
  Occupy("low", 4);
  Holding holding{.job = "ns/low", .priority = 0};
  for (int i = 1; i < 4; ++i) holding.pods.push_back({.uid = "low-" + std::to_string(i)});
  admission_.SetHolding(holding);
  AdmissionRequest high = Request("high", 2);
  high.priority = 100;
  high.preempts = true;
  Ask(high);
  Ask(Request("other", 2));
  (void)CallersAt(std::chrono::seconds(0));
  ASSERT_FALSE(admission_.DemandsOn("ns/low").empty());
  EXPECT_THAT(CallersAt(kAfter), IsEmpty());
}

TEST_F(NodeCallsTest, TheBoundBeginsAnewForAJobThatHadRoomMeanwhile) {
  Ask(Request("a", 5));
  (void)CallersAt(std::chrono::seconds(0));
  Gpus("a", 5);
  (void)CallersAt(std::chrono::seconds(10));
  Gpus("a", 4);  // the held places are lost with the node's room
  EXPECT_THAT(CallersAt(kAfter), IsEmpty());
}

TEST_F(NodeCallsTest, PodsThatHaveToBeTogetherCallInTheDomainThatTheyWaitFor) {
  AdmissionRequest request = Request("a", 5);
  request.near = {.label = "rack", .required = true};
  Ask(request);
  (void)CallersAt(std::chrono::seconds(0));
  EXPECT_THAT(CallersAt(kAfter), IsEmpty()) << "no node is in a rack";
  Gpus("b", 2, {{"rack", "r1"}});
  EXPECT_THAT(CallersAt(kAfter), ElementsAre("ns/a"));
  EXPECT_EQ(admission_.Ask(request, {}).domain, "r1");
}

}  // namespace
}  // namespace ringmaster::scheduler
