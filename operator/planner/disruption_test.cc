// Early warning, and nodes whose kubelet is silent.
#include "operator/planner/disruption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/labels.h"
#include "operator/planner/testing/nodes.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct WarningCase {
  std::string name;
  std::string reason;  // empty: no warning
  bool ends = false;
  std::function<void(NodeFacts&)> change;
};

class WarningTable : public testing::TestWithParam<WarningCase> {};

TEST_P(WarningTable, SaysWhatAnnouncesTheEndOfANode) {
  NodeFacts node{.name = "gpu-a", .ready = true};
  GetParam().change(node);
  const auto warning = WarningOf(node, DefaultDisruptionTaints());
  EXPECT_EQ(warning ? warning->reason : "", GetParam().reason);
  EXPECT_EQ(warning && warning->ends, GetParam().ends);
}

WarningCase Taint(std::string name, std::string key, std::string effect, bool warns) {
  return {std::move(name), warns ? "NodeTainted:" + key : "", warns,
          [key, effect](NodeFacts& node) {
            node.taints.push_back({key, effect});
          }};
}

INSTANTIATE_TEST_SUITE_P(
    PlannerTest, WarningTable,
    testing::Values(WarningCase{"Nothing", "", false, [](NodeFacts&) {}},
                    WarningCase{"Cordon", "NodeCordoned", false,
                                [](NodeFacts& n) { n.unschedulable = true; }},
                    WarningCase{"NotReady", "", false, [](NodeFacts& n) { n.ready = false; }},
                    WarningCase{"TaintBeforeCordon", "NodeTainted:karpenter.sh/disrupted", true,
                                [](NodeFacts& n) {
                                  n.unschedulable = true;
                                  n.taints = {{"node.kubernetes.io/unschedulable", "NoSchedule"},
                                              {"karpenter.sh/disrupted", "NoSchedule"}};
                                }},
                    Taint("Autoscaler", "ToBeDeletedByClusterAutoscaler", "NoSchedule", true),
                    Taint("AutoscalersCandidate", "DeletionCandidateOfClusterAutoscaler",
                          "PreferNoSchedule", false),
                    Taint("Spot", "aws-node-termination-handler/spot-itn", "NoExecute", true),
                    Taint("OnlyPreferred", "karpenter.sh/disrupted", "PreferNoSchedule", false),
                    Taint("Unreachable", "node.kubernetes.io/unreachable", "NoExecute", false),
                    Taint("NotReadyTaint", "node.kubernetes.io/not-ready", "NoExecute", false),
                    Taint("Pressure", "node.kubernetes.io/memory-pressure", "NoSchedule", false),
                    Taint("OutOfService", "node.kubernetes.io/out-of-service", "NoExecute", false),
                    Taint("ATaintOfTheUsers", "nvidia.com/gpu", "NoSchedule", false)),
    [](const auto& info) { return info.param.name; });

// Applies the annotations, as the controller does.
void Annotate(World& world, const Decision& out) {
  for (const PodAnnotate& note : out.annotations) {
    for (PodFacts& pod : world.in.pods) {
      if (pod.name != note.name) continue;
      if (note.key == api::kWarnedAnnotation) pod.warned = note.value;
      if (note.key == api::kWarnedSinceAnnotation) pod.warned_since = api::ParseTime(note.value);
    }
  }
}
void Cordon(World& world, int index) {
  world.Node("gpu-" + std::to_string(index)).unschedulable = true;
}
void Taint(World& world, int index, const std::string& key) {
  world.Node("gpu-" + std::to_string(index)).taints.push_back({key, "NoSchedule"});
}

TEST(EarlyWarningTest, AReplacementIsAskedForFirstAndThePodGoesWhenThatTrains) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(3));
  EXPECT_THAT(Drained(out), IsEmpty());
  EXPECT_THAT(Reasons(out), Contains("DisruptionAnnounced"));
  Annotate(world, out);
  EXPECT_EQ(world.Pod(1).warned, "NodeCordoned");

  world.Running(3).On(3, "gpu-3").Ready(3);
  world.Pod(3).http = "10.0.0.1:80";
  out = Plan(world.in);
  EXPECT_THAT(Drained(out), IsEmpty()) << "it is ready, but does not train yet";
  EXPECT_THAT(Created(out), IsEmpty());
  EXPECT_THAT(Reasons(out), IsEmpty()) << "it is said once";

  world.Members(2, {0, 1, 2, 3});
  out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-1"));
  EXPECT_EQ(out.drains[0].reason, "NodeCordoned");
  EXPECT_THAT(Created(out), IsEmpty());
}

TEST(EarlyWarningTest, ACordonAloneDrainsNobodyWithoutAReplacement) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Annotate(world, Plan(world.in));
  world.Pending(3);
  world.in.now += seconds(24 * 3600);
  EXPECT_THAT(Drained(Plan(world.in)), IsEmpty());
}

TEST(EarlyWarningTest, OnANodeThatEndsThePodLeavesInTimeWithOrWithoutAReplacement) {
  World world = OnThreeNodes();
  Taint(world, 1, "aws-node-termination-handler/spot-itn");
  Decision out = Plan(world.in);
  Annotate(world, out);
  world.Pending(3);
  out = Plan(world.in);
  EXPECT_THAT(Drained(out), IsEmpty());
  ASSERT_TRUE(out.look_again);
  EXPECT_LE(*out.look_again, kWarnedGrace + seconds(1));
  world.in.now += kWarnedGrace;
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-1"));
}

TEST(EarlyWarningTest, ACordonThatIsTakenBackCostsNothing) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Annotate(world, Plan(world.in));
  world.Pending(3);
  world.Node("gpu-1").unschedulable = false;
  const Decision out = Plan(world.in);
  EXPECT_THAT(Reasons(out), Contains("DisruptionOver"));
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-3"))
      << "the replacement, not a pod that trains";
  Annotate(world, out);
  EXPECT_EQ(world.Pod(1).warned, "");
}

TEST(EarlyWarningTest, AsManyLeaveAsHaveBeenReplaced) {
  World world = OnThreeNodes();
  for (const int i : {0, 1, 2}) Cordon(world, i);
  Annotate(world, Plan(world.in));
  EXPECT_THAT(Created(Plan(world.in)), ElementsAre(3, 4, 5));
  for (const int i : {3, 4, 5}) world.Running(i).On(i, "new-" + std::to_string(i)).Ready(i);
  world.Members(2, {0, 1, 2, 3, 4});
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-2", "digits-worker-1"));
}

TEST(EarlyWarningTest, NodesThatEndAreLeftBeforeThoseThatAreCordoned) {
  World world = OnThreeNodes();
  Taint(world, 0, "karpenter.sh/disrupted");
  Cordon(world, 2);
  Annotate(world, Plan(world.in));
  world.Running(3).On(3, "gpu-3").Ready(3).Members(2, {0, 1, 2, 3});
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-0"));
}

TEST(EarlyWarningTest, AScaleDownTakesThoseThatAreToGoAnyway) {
  World world = OnThreeNodes();
  Cordon(world, 0);
  world.in.job.spec.worker.replicas = 2;
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-0"));
  EXPECT_THAT(Created(out), IsEmpty());
}

TEST(EarlyWarningTest, AFirstViewDoesWithoutThemWhereOthersAreEnough) {
  World world(2);
  world.in.disruption_taints = DefaultDisruptionTaints();
  for (const int i : {0, 1, 2}) world.Running(i).On(i, "gpu-" + std::to_string(i)).Ready(i);
  Cordon(world, 0);
  const Decision out = Plan(world.in);
  ASSERT_NE(out.first_view, nullptr);
  ASSERT_EQ(out.first_view->pods.size(), 2u);
  EXPECT_LT(out.first_view->FindPod("uid-0"), 0);
}

TEST(EarlyWarningTest, ADeletedPodIsDrainedByItsDeadline) {
  World world = OnThreeNodes();
  world.Pod(1).deleting = true;
  world.Pod(1).delete_at = kNow + seconds(30);
  const Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(3));
  EXPECT_THAT(Told<DrainNotice>(out), ElementsAre("uid-0", "uid-1"));
  for (const PodNotice& sent : out.notices) {
    if (const auto* drain = std::get_if<DrainNotice>(&sent.notice)) {
      EXPECT_EQ(drain->deadline_unix_ms, std::chrono::duration_cast<std::chrono::milliseconds>(
                                             (kNow + seconds(30)).time_since_epoch())
                                             .count());
    }
  }
}

TEST(EarlyWarningTest, OfNodesThatAreNotKnownNothingIsConcluded) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Annotate(world, Plan(world.in));
  world.in.nodes.clear();
  const Decision out = Plan(world.in);
  EXPECT_THAT(out.creates, IsEmpty());
  EXPECT_THAT(out.annotations, IsEmpty()) << "the warning isn't taken back either";
}

// ---- Pods that may run on such a node all the same.

using Json = nlohmann::json;
using Announced = std::map<std::string, std::string>;

constexpr char kSpot[] = "aws-node-termination-handler/spot-itn";
const std::string kTaintedSpot = std::string("NodeTainted:") + kSpot;

World OfPodsThatTolerateEverything() {
  World world = OnThreeNodes();
  world.in.job.spec.worker.pod_template["spec"]["tolerations"] = {{{"operator", "Exists"}}};
  return world;
}
// Pod 3, created by `out`, runs on the node of pod 1.
void PutBack(World& world, const Decision& out) {
  world.Running(3).On(3, "gpu-1").Ready(3);
  world.Pod(3).http = "10.0.0.1:80";
  world.Pod(3).announced = out.creates.at(0).announced;
}

TEST(InSpiteOfTest, APodThatIsPutOnTheCordonedNodeAgainStaysThere) {
  World world = OfPodsThatTolerateEverything();
  Cordon(world, 1);
  Decision out = Plan(world.in);
  ASSERT_THAT(Created(out), ElementsAre(3));
  EXPECT_EQ(out.creates[0].announced, (Announced{{"gpu-1", "NodeCordoned"}}));
  EXPECT_THAT(out.creates[0].avoid, ElementsAre("gpu-1"));
  EXPECT_THAT(out.creates[0].keep_off, IsEmpty());
  Annotate(world, out);
  PutBack(world, out);
  out = Plan(world.Members(2, {0, 1, 2, 3}).in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-1")) << "it was there before the cordon";
  out = Plan(world.Remove(1).Members(3, {0, 2, 3}).in);
  EXPECT_THAT(Created(out), IsEmpty());
  EXPECT_THAT(Drained(out), IsEmpty());
  EXPECT_THAT(out.annotations, IsEmpty());
  EXPECT_THAT(Reasons(out), testing::Not(Contains("DisruptionAnnounced")));
}

TEST(InSpiteOfTest, OrdinaryPodsAreKeptAwayByTheSchedulerAndToldNothing) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Taint(world, 2, kSpot);
  const Decision out = Plan(world.in);
  ASSERT_THAT(Created(out), ElementsAre(3, 4));
  EXPECT_THAT(out.creates[0].announced, IsEmpty());
  EXPECT_THAT(out.creates[0].avoid, IsEmpty());
  EXPECT_THAT(out.creates[0].keep_off, IsEmpty());
}

TEST(InSpiteOfTest, NoPodIsPutOnANodeThatEnds) {
  World world = OfPodsThatTolerateEverything();
  Taint(world, 1, kSpot);
  Decision out = Plan(world.in);
  ASSERT_THAT(Created(out), ElementsAre(3));
  EXPECT_THAT(out.creates[0].keep_off, ElementsAre("gpu-1"));
  EXPECT_THAT(out.creates[0].avoid, IsEmpty());
  EXPECT_EQ(out.creates[0].announced, (Announced{{"gpu-1", kTaintedSpot}}));
  Annotate(world, out);
  world.in.now += kWarnedGrace;
  world.Pending(3);
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-1")) << "it leaves all the same";
}

// Its state is lost if it leaves, and only perhaps if it stays.
TEST(EarlyWarningTest, TheLastPodThatHasTheStateWaitsForAReplacementForLonger) {
  World world = OnThreeNodes();
  for (const int i : {0, 1, 2}) Taint(world, i, kSpot);
  Annotate(world, Plan(world.in));
  world.Pending(3).Pending(4).Pending(5);
  world.in.now += kWarnedGrace;
  Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-2", "digits-worker-1"));
  ASSERT_TRUE(out.look_again);
  world.in.now += kLastWarnedGrace - kWarnedGrace;
  EXPECT_THAT(Drained(Plan(world.in)),
              ElementsAre("digits-worker-2", "digits-worker-1", "digits-worker-0"));
}

TEST(InSpiteOfTest, OnlyTheTaintThatThePodToleratesLetsItIn) {
  World world = OnThreeNodes();
  world.in.job.spec.worker.pod_template["spec"]["tolerations"] = {
      {{"key", kSpot}, {"value", "yes"}, {"effect", "NoSchedule"}}};
  Cordon(world, 0);
  world.Node("gpu-1").taints = {{kSpot, "NoSchedule", "yes"}};
  world.Node("gpu-2").taints = {{kSpot, "NoSchedule", "no"}};
  EXPECT_EQ(Plan(world.in).creates.at(0).announced, (Announced{{"gpu-1", kTaintedSpot}}));
}

TEST(InSpiteOfTest, AnotherCauseIsNews) {
  World world = OfPodsThatTolerateEverything();
  Cordon(world, 1);
  PutBack(world, Plan(world.in));
  world.Remove(1).Members(3, {0, 2, 3});
  Taint(world, 1, kSpot);
  Annotate(world, Plan(world.in));
  EXPECT_EQ(world.Pod(3).warned, kTaintedSpot);
  world.Node("gpu-1").taints.clear();
  Annotate(world, Plan(world.in));
  EXPECT_EQ(world.Pod(3).warned, "") << "the cordon that it knows is what is left";
}

TEST(InSpiteOfTest, ACordonOfAnotherNodeIsNews) {
  World world = OfPodsThatTolerateEverything();
  Cordon(world, 1);
  PutBack(world, Plan(world.in));
  Cordon(world, 2);
  Annotate(world, Plan(world.in));
  EXPECT_EQ(world.Pod(2).warned, "NodeCordoned");
}

TEST(InSpiteOfTest, TheNextCordonIsNews) {
  World world = OfPodsThatTolerateEverything();
  Cordon(world, 1);
  PutBack(world, Plan(world.in));
  world.Remove(1).Members(3, {0, 2, 3});
  world.Node("gpu-1").unschedulable = false;
  const Decision out = Plan(world.in);
  ASSERT_EQ(out.annotations.size(), 1u);
  EXPECT_EQ(out.annotations[0].name, "digits-worker-3");
  EXPECT_EQ(out.annotations[0].key, api::kAnnouncedAnnotation);
  EXPECT_EQ(out.annotations[0].value, "");
  world.Pod(3).announced.clear();
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
  Cordon(world, 1);
  Annotate(world, Plan(world.in));
  EXPECT_EQ(world.Pod(3).warned, "NodeCordoned");
}

TEST(InSpiteOfTest, APodThatIsKeptOffANodeWhichStaysAfterAllIsMadeAnew) {
  World world = OfPodsThatTolerateEverything();
  world.in.job.spec.worker.replicas = 4;
  world.Pending(3).Pod(3).announced = {{"gpu-1", kTaintedSpot}};
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-3"));
  EXPECT_EQ(out.drains[0].reason, "NodeStays");
  ASSERT_THAT(Created(out), ElementsAre(4));
  EXPECT_THAT(out.creates[0].keep_off, IsEmpty());
}

TEST(InSpiteOfTest, ACordonThatIsLeftOfATaintIsOnlyAvoided) {
  World world = OfPodsThatTolerateEverything();
  world.in.job.spec.worker.replicas = 4;
  world.Pending(3).Pod(3).announced = {{"gpu-1", kTaintedSpot}};
  Cordon(world, 1);
  const Decision out = Plan(world.in);
  EXPECT_THAT(Drained(out), ElementsAre("digits-worker-3"));
  EXPECT_THAT(out.creates.at(0).avoid, ElementsAre("gpu-1"));
}

TEST(InSpiteOfTest, ACordonIsATaintThatNodesHaveByThatName) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Json& spec = world.in.job.spec.worker.pod_template["spec"];
  spec["tolerations"] = {{{"key", "node.kubernetes.io/unschedulable"},
                          {"operator", "Exists"},
                          {"effect", "NoSchedule"}}};
  EXPECT_THAT(Plan(world.in).creates.at(0).announced, testing::SizeIs(1));
  spec["tolerations"][0]["effect"] = "NoExecute";
  EXPECT_THAT(Plan(world.in).creates.at(0).announced, IsEmpty());
}

struct StillKeptOff {
  const char* name;
  void (*change)(World& world);
};

class KeptOffTable : public testing::TestWithParam<StillKeptOff> {};

TEST_P(KeptOffTable, ThePodIsLeftAsItIs) {
  World world = OfPodsThatTolerateEverything();
  world.in.job.spec.worker.replicas = 4;
  world.Pending(3).Pod(3).announced = {{"gpu-1", kTaintedSpot}};
  GetParam().change(world);
  EXPECT_THAT(Drained(Plan(world.in)), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    InSpiteOfTest, KeptOffTable,
    testing::Values(StillKeptOff{"ItStillEnds", [](World& w) { Taint(w, 1, kSpot); }},
                    StillKeptOff{"ItEndsOtherwise",
                                 [](World& w) { Taint(w, 1, "karpenter.sh/disrupted"); }},
                    StillKeptOff{"TheNodeIsGone",
                                 [](World& w) {
                                   std::erase_if(w.in.nodes, [](const NodeFacts& node) {
                                     return node.name == "gpu-1";
                                   });
                                 }},
                    StillKeptOff{"ItWasOnlyAvoided",
                                 [](World& w) {
                                   w.Pod(3).announced = {{"gpu-1", kCordoned}};
                                 }},
                    StillKeptOff{"ItHasANode", [](World& w) { w.Pod(3).scheduled = true; }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(InSpiteOfTest, WhereTheTemplateNamesTheNodeThePodStaysWhateverIsAnnounced) {
  World world = OnThreeNodes();
  world.in.job.spec.worker.pod_template["spec"]["nodeName"] = "gpu-1";
  Taint(world, 1, kSpot);
  Cordon(world, 2);
  const Decision out = Plan(world.in);
  EXPECT_EQ(out.creates.at(0).announced, (Announced{{"gpu-1", kTaintedSpot}}));
  EXPECT_THAT(out.creates[0].keep_off, IsEmpty()) << "its kubelet would refuse it";
  EXPECT_THAT(out.creates[0].avoid, IsEmpty());
  PutBack(world, out);
  Annotate(world, Plan(world.in));
  EXPECT_EQ(world.Pod(1).warned, kTaintedSpot);
  EXPECT_EQ(world.Pod(3).warned, "");
}

// ---- The node's kubelet is silent.

World WithASilentNode() {
  World world = OnThreeNodes();
  world.Node("gpu-2").ready = false;
  world.Node("gpu-2").taints = {{"node.kubernetes.io/unreachable", "NoExecute"}};
  world.Sidecar(2).connected = false;
  world.Members(2, {0, 1});
  return world;
}

TEST(SilentNodeTest, ThePodThatTheRingDoesWithoutIsReplacedButNotDeleted) {
  World world = WithASilentNode();
  Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), ElementsAre(3));
  EXPECT_THAT(Drained(out), IsEmpty());
  EXPECT_THAT(Deleted(out), IsEmpty());
  EXPECT_THAT(out.creates[0].avoid, ElementsAre("gpu-2"));
  EXPECT_EQ(out.status.troubled_nodes.at(0).reason, "NodeUnreachable");
  world.in.job.status = out.status;
  world.Pending(3);
  out = Plan(world.in);
  EXPECT_EQ(out.status.troubled_nodes.at(0).failures, 1) << "the same silence counts once";
  EXPECT_THAT(Created(out), IsEmpty());
}

TEST(SilentNodeTest, AMemberIsNotReplacedWhileTheRingCountsOnIt) {
  World world = WithASilentNode();
  world.Members(3, {0, 1, 2});
  EXPECT_THAT(Created(Plan(world.in)), IsEmpty());
}

TEST(SilentNodeTest, WhenThePodComesBackTheSurplusLeaves) {
  World world = WithASilentNode();
  world.Running(3).On(3, "gpu-3").Ready(3).Members(3, {0, 1, 3});
  EXPECT_THAT(Drained(Plan(world.in)), IsEmpty());
  world.Sidecar(2).connected = true;
  EXPECT_THAT(Drained(Plan(world.in)), ElementsAre("digits-worker-2"))
      << "it doesn't train, the others do";
}

TEST(SilentNodeTest, EachSilentNodeIsHeldAgainstItself) {
  World world = WithASilentNode();
  world.Members(3, {0});
  world.Settle();
  world.Node("gpu-1").taints = {{"node.kubernetes.io/unreachable", "NoExecute"}};
  world.Sidecar(1).connected = false;
  EXPECT_NE(Troubled(Plan(world.in), "gpu-1"), nullptr);
}

TEST(SilentNodeTest, APodThatHasNotRegisteredYetIsNotAway) {
  World world = OnThreeNodes();
  world.in.job.spec.worker.replicas = 4;
  world.Running(3).On(3, "gpu-3");
  const Decision out = Plan(world.in);
  EXPECT_THAT(Created(out), IsEmpty());
  EXPECT_THAT(out.status.troubled_nodes, IsEmpty());
}

TEST(EarlyWarningTest, WhatIsAnnouncedAnewIsWrittenDownAnew) {
  World world = OnThreeNodes();
  Cordon(world, 1);
  Annotate(world, Plan(world.in));
  Taint(world, 1, "karpenter.sh/disrupted");
  Annotate(world, Plan(world.in));
  EXPECT_EQ(world.Pod(1).warned, "NodeTainted:karpenter.sh/disrupted");
}

TEST(EarlyWarningTest, NobodyWarnsAJobThatHasEndedOrIsSuspended) {
  World suspended = OnThreeNodes();
  suspended.in.job.spec.run_policy.suspend = true;
  World failed = OnThreeNodes();
  failed.End(2, PodPhase::kFailed, 1).Settle();
  for (World* world : {&suspended, &failed}) {
    Cordon(*world, 1);
    EXPECT_THAT(Plan(world->in).annotations, IsEmpty());
  }
}

// ---- Admission beside nodes that are to go

TEST(DisruptionGangTest, APodOnANodeThatIsToGoIsReplacedWhateverSizesAreAllowed) {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{}, {3}, {3, 6}}) {
    World world = OnThreeNodes();
    world.in.job.spec.elastic_policy.min_replicas = 3;
    world.in.job.spec.elastic_policy.allowed_sizes = sizes;
    world.Node("gpu-0").unschedulable = true;
    world.in.gang_fit = scheduler::GangFit{.fit = 1};
    const Decision decision = Plan(world.in);
    EXPECT_THAT(decision.gang_sizes, ElementsAre(1)) << testing::PrintToString(sizes);
    EXPECT_EQ(decision.creates.size(), 1u) << testing::PrintToString(sizes);
  }
}

TEST(DisruptionGangTest, PodsOfWhichNobodyHearsAreNoPartOfAGangThatHasNotBegun) {
  World world(3);
  world.in.job.spec.elastic_policy.min_replicas = 3;
  for (const int i : {0, 1, 2}) {
    world.Running(i);
    world.On(i, "gpu-" + std::to_string(i));
    world.Node("gpu-" + std::to_string(i))
        .taints.push_back({"node.kubernetes.io/unreachable", "NoSchedule", ""});
  }
  world.in.gang_fit = scheduler::GangFit{.fit = 1, .why = "0/3", .tried = 1};
  const Decision decision = Plan(world.in);
  EXPECT_THAT(decision.gang_sizes, ElementsAre(3));
  EXPECT_EQ(decision.gang_state, scheduler::GangState::kWaits);
  EXPECT_THAT(decision.creates, IsEmpty()) << "one alone can't train";
}

TEST(DisruptionGangTest, AJobWithAPodOnANodeThatIsToGoMayBeAskedForAll) {
  World world = OnThreeNodes();
  world.in.job.spec.elastic_policy.min_replicas = 3;
  world.Node("gpu-0").unschedulable = true;
  world.in.gang_fit = scheduler::GangFit{.fit = 0, .why = "0/3"};
  const Decision decision = Plan(world.in);
  ASSERT_TRUE(decision.holding);
  EXPECT_EQ(decision.holding->pods.size(), 3u);
  EXPECT_EQ(decision.holding->least, 3);
  EXPECT_TRUE(decision.holding->whole);
}

}  // namespace
}  // namespace ringmaster::planner
