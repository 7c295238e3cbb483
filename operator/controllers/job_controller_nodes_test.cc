// The controller and nodes: proof of death, early warning, capacity.
#include "operator/api/labels.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/testing/job_controller_fixture.h"
#include "operator/planner/proof.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using testing::JobControllerTest;

class JobControllerNodesTest : public JobControllerTest {};

const Json kTolerateOutOfService = {{"key", planner::kOutOfServiceTaint}, {"operator", "Exists"}};

TEST_P(JobControllerNodesTest, ALostPodThatIsForceDeletedStaysUntilItsNodeIsOutOfService) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ForceDelete("digits-worker-2");
  ASSERT_TRUE(Eventually([&] {
    return pods_->Members() == Names({0, 1, 3});
  })) << "it is replaced all the same";
  ASSERT_TRUE(HasFinalizer(PodObject("digits-worker-2")));
  // Another reconcile of the job that changes nothing: there is no proof.
  Change({{"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(Eventually([&] { return pods_->Members() == Names({0, 1, 3, 4}); }));
  ASSERT_TRUE(HasFinalizer(PodObject("digits-worker-2")));
  PatchNode("node-2", {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "Unknown"}}}}}}},
            "status");
  PatchNode(
      "node-2",
      {{"spec", {{"taints", {{{"key", planner::kOutOfServiceTaint}, {"effect", "NoExecute"}}}}}}});
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1, 3, 4}); }));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ProvenDead"); }));
}

TEST_P(JobControllerNodesTest, TheRebootOfItsNodeProvesThatAPodIsDead) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  PatchNode("node-2", {{"status", {{"nodeInfo", {{"bootID", "boot-2"}}}}}}, "status");
  ASSERT_TRUE(TrainsAs({0, 1, 3})) << "nobody had to delete it";
  EXPECT_EQ(Status().pods_replaced, 1);
  EXPECT_EQ(Status().faults, 0);
}

TEST_P(JobControllerNodesTest, ANodeThatHasComeBackUnseenProvesNobodyDead) {
  AddNodes();
  PatchNode("node-2", {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "Unknown"}}}}}}},
            "status");
  PatchNode(
      "node-2",
      {{"spec", {{"taints", {{{"key", planner::kOutOfServiceTaint}, {"effect", "NoExecute"}}}}}}});
  RestartOperator();  // so its cache surely has that
  door_->StallWatch(kube::Nodes());
  PatchNode("node-2", {{"spec", {{"taints", nullptr}}}});
  PatchNode("node-2", {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}},
            "status");
  node_ = "node-2";
  // Kubernetes' own controllers may not have seen either that the taint is gone, and would evict.
  Apply(2, {{"worker",
             {{"template", {{"spec", {{"tolerations", Json::array({kTolerateOutOfService})}}}}}}}});
  ASSERT_TRUE(TrainsAs({0, 1}));
  EXPECT_EQ(Annotation("digits-worker-0", api::kProvenAnnotation), "");
  EXPECT_FALSE(HasEvent("ProvenDead"));
}

TEST_P(JobControllerNodesTest, OnACordonAnotherPodComesFirstAndThenThePodLeaves) {
  AddNodes();
  Apply(2);  // minReplicas: a drain would wait for ever for a third pod
  ASSERT_TRUE(TrainsAs({0, 1}));
  node_ = "node-2";
  Cordon("node-1");
  ASSERT_TRUE(TrainsAs({2, 3}));
  EXPECT_TRUE(Eventually([&] { return HasEvent("DisruptionAnnounced"); }));
  EXPECT_TRUE(pods_->WasTold("digits-worker-0", "Drain"));
}

TEST_P(JobControllerNodesTest, ACordonThatIsTakenBackLeavesTheJobAsItWas) {
  AddNodes();
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  pods_->NeverReady("digits-worker-2");
  pods_->NeverReady("digits-worker-3");
  node_ = "node-2";
  Cordon("node-1");
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1, 2, 3}); }));
  Cordon("node-1", false);
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1}); }));
  EXPECT_EQ(pods_->Members(), Names({0, 1}));
  EXPECT_EQ(Annotation("digits-worker-0", api::kWarnedAnnotation), "");
}

const Json kTolerateEverything =
    Json::parse(R"({"worker": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}})");

TEST_P(JobControllerNodesTest, PodsThatArePutOnTheCordonedNodeAgainStayThere) {
  AddNodes();
  Apply(2, kTolerateEverything);
  ASSERT_TRUE(TrainsAs({0, 1}));
  Cordon("node-1");
  ASSERT_TRUE(TrainsAs({2, 3})) << "they were there before the cordon";
  const auto uid = [&](const char* pod) { return runtime::MetaField(PodObject(pod), "uid"); };
  const std::string two = uid("digits-worker-2"), three = uid("digits-worker-3");
  Change({{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(TrainsAsOneOf({{0, 2, 3}, {1, 2, 3}}));
  EXPECT_EQ(uid("digits-worker-2"), two);
  EXPECT_EQ(uid("digits-worker-3"), three);
  for (const std::string& pod : Pods()) EXPECT_EQ(Annotation(pod, api::kWarnedAnnotation), "");
}

TEST_P(JobControllerNodesTest, APodIsKeptOffANodeThatEndsForAsLongAsThatIsAnnounced) {
  AddNodes();
  PatchNode(
      "node-2",
      {{"spec", {{"taints", {{{"key", "karpenter.sh/disrupted"}, {"effect", "NoSchedule"}}}}}}});
  RestartOperator();  // so its cache has that
  Json spec = kTolerateEverything;
  spec["worker"]["template"]["spec"]["schedulingGates"] = {{{"name", "example.com/not-yet"}}};
  Apply(2, spec);
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1}); }));
  const std::string node = cluster_->NodeName("node-2");
  EXPECT_THAT(PodObject("digits-worker-1")["spec"]["affinity"].dump(),
              ::testing::HasSubstr(R"("operator":"NotIn","values":[")" + node + R"("])"));
  PatchNode("node-2", {{"spec", {{"taints", nullptr}}}});
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({2, 3}); })) << "they may go there now";
  EXPECT_EQ(PodObject("digits-worker-3")["spec"].dump().find(node), std::string::npos);
}

TEST_P(JobControllerNodesTest, NobodyHoldsThePodsOfAJobThatIsDeleted) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), ns_, "digits", {}));
  ForceDelete("digits-worker-2");
  ASSERT_TRUE(Eventually([&] { return Pods().empty(); }));
}

TEST_P(JobControllerNodesTest, NobodyHoldsThePodsOfAJobThatIsDeletedInTheForeground) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), ns_, "digits", {.propagation = "Foreground"}));
  ForceDelete("digits-worker-2");
  ASSERT_TRUE(
      Eventually([&] { return Pods().empty() && !api_->Get(kube::HorovodJobs(), ns_, "digits"); }));
}

TEST_P(JobControllerNodesTest, PodsThatLostTheirJobWhileNoOperatorRanAreLetGo) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  controller_->Stop();
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), ns_, "digits", {}));
  ForceDelete("digits-worker-2");
  ASSERT_FALSE(PodObject("digits-worker-2").is_null());
  RestartOperator();
  ASSERT_TRUE(Eventually([&] { return Pods().empty(); }));
}

TEST_P(JobControllerNodesTest, UninstallingTakesTheFinalizerOffEveryPodAndNothingElse) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  PatchPod("digits-worker-0", {{"finalizers", {"example.com/mine", api::kProofFinalizer}}});
  controller_->Stop();
  const auto cleared = ClearFinalizers(*api_, ns_);
  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_EQ(*cleared, 2);
  EXPECT_EQ(PodObject("digits-worker-0")["metadata"]["finalizers"],
            Json::array({"example.com/mine"}));
  EXPECT_FALSE(HasFinalizer(PodObject("digits-worker-1")));
  EXPECT_EQ(*ClearFinalizers(*api_, ns_), 0);
}

TEST_P(JobControllerNodesTest, WithoutRightsOnNodesJobsRunWithoutEarlyWarning) {
  AddNodes();
  door_->ForbidNodes();
  RestartOperator();
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  Cordon("node-1");
  pods_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAs({0, 2}));
  EXPECT_FALSE(HasEvent("DisruptionAnnounced"));
}

// As on a cloud where only the cloud's controller removes nodes.
class TrustedNodesTest : public JobControllerTest {
 protected:
  void SetUp() override {
    options_.trust_node_deletion = true;
    ASSERT_NO_FATAL_FAILURE(JobControllerTest::SetUp());
  }
  void DeleteNode2() {
    ASSERT_TRUE(api_->Delete(kube::Nodes(), "", cluster_->NodeName("node-2"), {}));
  }
};

TEST_P(TrustedNodesTest, ANodeThatIsRemovedProvesThatItsPodsAreDead) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ASSERT_NO_FATAL_FAILURE(DeleteNode2());
  EXPECT_TRUE(TrainsAs({0, 1, 3}));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ProvenDead"); }));
}

TEST_P(TrustedNodesTest, ANodeThatCanNotBeAskedForMayBeThere) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  door_->RefuseGets(kube::Nodes());
  ASSERT_NO_FATAL_FAILURE(DeleteNode2());
  ASSERT_TRUE(Eventually([&] { return door_->refused_gets() > 0; }));
  Change({{"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(Eventually([&] { return pods_->Members() == Names({0, 1, 3}); }));
  EXPECT_FALSE(HasEvent("ProvenDead"));
}

class GangAdmissionTest : public JobControllerTest {
 protected:
  void SetUp() override {
    options_.gang_admission = true;
    options_.pod.counted = true;
    ASSERT_NO_FATAL_FAILURE(JobControllerTest::SetUp());
  }
  void AddNodeWithGpu(const std::string& name, const Json& labels = Json::object()) {
    AddNode(name,
            {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
             {"allocatable", {{"example.com/gpu", "1"}, {"pods", "110"}}}},
            labels);
  }
  std::size_t PodObjects() { return api_->ListAll(kube::Pods(), ns_, {})->items.size(); }
  const Json with_gpus_ = Json::parse(R"({"worker": {"template": {"spec": {"containers": [
      {"name": "worker", "image": "digits", "command": ["train"],
       "resources": {"limits": {"example.com/gpu": "1"}}}]}}}})");
};

TEST_P(GangAdmissionTest, NothingStartsUntilTheLeastFitTogetherAndTheRestFollowsTheRoom) {
  AddNodeWithGpu("node-1");
  Apply(3, with_gpus_);
  ASSERT_TRUE(Eventually([&] {
    const api::Status status = Status();
    const auto* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  }));
  EXPECT_EQ(PodObjects(), 0u) << "so it takes no quota";
  EXPECT_NE(Status().Find("Scheduled")->message.find("minReplicas is 2"), std::string::npos);
  AddNodeWithGpu("node-2");
  ASSERT_TRUE(Eventually([&] { return Status().world_size == 2; }));
  EXPECT_EQ(PodObjects(), 2u);
  AddNodeWithGpu("node-3");
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
}

TEST_P(GangAdmissionTest, PodsThatHaveToBeTogetherStartInOneRack) {
  const auto on_rack = [&](const char* rack) { return Json{{"example.com/rack", rack}}; };
  const auto racks = [&] {
    std::set<std::string> racks;
    const auto pods = api_->ListAll(kube::Pods(), ns_, {});
    for (const Json& pod : pods->items) {
      racks.insert(pod["spec"].value("nodeSelector", Json::object()).value("example.com/rack", ""));
    }
    return racks;
  };
  AddNodeWithGpu("node-1", on_rack("a"));
  AddNodeWithGpu("node-2", on_rack("b"));
  Json spec = with_gpus_;
  spec["runPolicy"] = {{"schedulingPolicy", {{"topology", {{"required", "example.com/rack"}}}}}};
  Apply(2, spec);
  ASSERT_TRUE(Eventually([&] {
    const api::Status status = Status();
    const auto* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == "WaitingForRoom" &&
           scheduled->message.find("in example.com/rack=") != std::string::npos;
  })) << "each rack has room for one, and two have to start together";
  AddNodeWithGpu("node-3", on_rack("b"));
  ASSERT_TRUE(TrainsAs({0, 1}));
  EXPECT_EQ(racks(), std::set<std::string>{"b"});
}

RM_ON_EVERY_SERVER(JobControllerNodesTest);
RM_ON_EVERY_SERVER(TrustedNodesTest);
RM_ON_EVERY_SERVER(GangAdmissionTest);

}  // namespace
}  // namespace ringmaster::controllers
