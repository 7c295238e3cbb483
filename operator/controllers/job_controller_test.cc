#include "operator/controllers/job_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>

#include "operator/controllers/pod_marks.h"
#include "operator/controllers/testing/fake_cluster.h"
#include "operator/local/in_memory_api.h"
#include "operator/local/store.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using testing::Contains;
using testing::ElementsAre;

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// An API server that may know a caller without rights on nodes.
class Api : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    if (resource == kube::Nodes() && nodes_forbidden) {
      return tl::unexpected(kube::Error{.code = kube::ErrorCode::kForbidden,
                                        .http_status = 403,
                                        .message = "nodes is forbidden: cannot list nodes"});
    }
    return InMemoryApi::ListAll(resource, ns, options);
  }
  std::atomic<bool> nodes_forbidden = false;
};

class JobControllerTest : public testing::Test {
 protected:
  explicit JobControllerTest(const std::string& crd = ReadFile(RM_CRD_FILE))
      : store_(std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = crd})),
        api_(std::make_shared<Api>(store_)) {
    StartOperator();
    cluster_ = std::make_unique<FakeCluster>(api_, hub_.get(), [this](const std::string& pod) {
      // Pod 0 to node-1, and so on, where nodes count.
      const int index = std::stoi(pod.substr(pod.rfind('-') + 1));
      const std::string node = gang_ ? "node-" + std::to_string(index + 1) : std::string(node_);
      if (store_->Bind("default", pod, node)) return;
      const auto left = api_->Get(kube::Pods(), "default", pod);
      EXPECT_TRUE(!left || (*left)["metadata"].contains("deletionTimestamp")) << pod;
    });
    cluster_->SetBootId("boot-1");
  }
  ~JobControllerTest() override {
    controller_->Stop();
    cluster_.reset();
  }

  void StartOperator() {
    hub_ = std::make_unique<SidecarHub>();
    records_ = std::make_unique<RecordStore>(api_);
    JobControllerOptions options;
    options.pod.sidecar_target = "unix:/tmp/operator.sock";
    options.queue.first_backoff = std::chrono::milliseconds(5);
    options.gang_admission = gang_;
    options.pod.gang_gate = gang_;
    controller_ = std::make_unique<JobController>(api_, hub_.get(), records_.get(), options);
    const auto started = controller_->Start();
    ASSERT_TRUE(started) << started.error().message;
  }
  // The former operator is gone with all it knew.
  void RestartOperator() {
    controller_->Stop();
    old_hubs_.push_back(std::move(hub_));
    StartOperator();
    cluster_->MoveTo(hub_.get());
  }

  void AddNodes() {
    for (const char* name : {"node-1", "node-2"}) AddNode(name);
  }
  void AddNode(const std::string& name) {
    const Json node = {
        {"metadata", {{"name", name}}},
        {"status",
         {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
          {"nodeInfo",
           {{"bootID", "boot-1"}, {"machineID", name}, {"systemUUID", "uuid-of-" + name}}}}}};
    ASSERT_TRUE(api_->Create(kube::Nodes(), "", node));
  }
  void PatchNode(const std::string& name, const Json& patch, const std::string& subresource = "") {
    const auto patched = api_->Patch(kube::Nodes(), "", name, patch, {.subresource = subresource});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  void Cordon(const std::string& name, bool on = true) {
    PatchNode(name, {{"spec", {{"unschedulable", on}}}});
  }
  // Of a force delete: the object would be gone at once, were it not for the finalizer.
  void ForceDelete(const std::string& pod) {
    ASSERT_TRUE(api_->Delete(kube::Pods(), "default", pod, {.grace_period_seconds = 0}));
  }
  Json PodObject(const std::string& pod) {
    const auto object = api_->Get(kube::Pods(), "default", pod);
    return object ? *object : Json();
  }
  std::string Annotation(const std::string& pod, const char* key) {
    const Json annotations =
        PodObject(pod).value("/metadata/annotations"_json_pointer, Json::object());
    return annotations.value(key, "");
  }
  bool HasEvent(const std::string& reason) {
    const auto events = api_->ListAll(kube::Events(), "default", {});
    return events && std::any_of(events->items.begin(), events->items.end(),
                                 [&](const Json& e) { return e.value("reason", "") == reason; });
  }
  // Three pods of which one is on node-2, and is lost with it.
  void LoseAPodOnNode2() {
    AddNodes();
    Apply(2);
    ASSERT_TRUE(TrainsAs({0, 1}));
    node_ = "node-2";
    Change({{"worker", {{"replicas", 3}}}});
    ASSERT_TRUE(TrainsAs({0, 1, 2}));
    ASSERT_TRUE(Eventually(
        [&] { return !Annotation("digits-worker-2", planner::kBootAnnotation).empty(); }));
    node_ = "node-1";
    cluster_->LosePod("digits-worker-2");
  }

  void Apply(int replicas, const Json& spec = Json::object()) {
    Json job = Json::parse(R"({
      "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob",
      "metadata": {"name": "digits", "namespace": "default"},
      "spec": {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 8},
        "worker": {"template": {"spec": {"containers": [
        {"name": "worker", "image": "digits", "command": ["python3", "train.py"]}]}}}}})");
    job["spec"]["worker"]["replicas"] = replicas;
    job["spec"].merge_patch(spec);
    const auto created = api_->Create(kube::HorovodJobs(), "default", job);
    ASSERT_TRUE(created) << created.error().message;
  }
  void Change(const Json& spec) {
    const auto patched =
        api_->Patch(kube::HorovodJobs(), "default", "digits", {{"spec", spec}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  api::Status Status() {
    const auto job = api_->Get(kube::HorovodJobs(), "default", "digits");
    return job ? api::StatusFromJson(job->value("status", Json::object())) : api::Status{};
  }
  std::vector<std::string> Pods() {
    std::vector<std::string> names;
    const auto list = api_->ListAll(kube::Pods(), "default", {});
    for (const Json& pod : list->items) names.push_back(runtime::MetaField(pod, "name"));
    std::sort(names.begin(), names.end());
    return names;
  }
  std::vector<std::string> Names(std::vector<int> indexes) {
    std::vector<std::string> names;
    for (const int index : indexes) names.push_back(planner::PodName("digits", index));
    return names;
  }
  // The API is the only thing to look at, so look until it is so; the limit is for broken code
  // only.
  testing::AssertionResult Eventually(const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!so()) {
      if (std::chrono::steady_clock::now() > end) {
        return testing::AssertionFailure()
               << "pods: " << testing::PrintToString(Pods())
               << " members: " << testing::PrintToString(cluster_->Members())
               << " status: " << api::StatusToJson(Status()).dump(1);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult TrainsAs(std::vector<int> indexes) {
    const auto names = Names(indexes);
    return Eventually([&] {
      const api::Status status = Status();
      return Pods() == names && cluster_->Members() == names && status.state == "Running" &&
             status.epoch == cluster_->epoch() && status.ring.size() == names.size();
    });
  }

  bool gang_ = false;
  std::atomic<const char*> node_ = "node-1";  // where pods are placed
  const std::shared_ptr<local::Store> store_;
  const std::shared_ptr<Api> api_;
  std::vector<std::unique_ptr<SidecarHub>> old_hubs_;
  std::unique_ptr<SidecarHub> hub_;
  std::unique_ptr<RecordStore> records_;
  std::unique_ptr<JobController> controller_;
  std::unique_ptr<FakeCluster> cluster_;
};

TEST_F(JobControllerTest, ANewJobComesToTrain) {
  Apply(4);
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3}));
  const api::Status status = Status();
  EXPECT_TRUE(status.Is("Running"));
  EXPECT_TRUE(Eventually([&] { return Status().Is("Scheduled"); }));
  EXPECT_EQ(status.world_size, 4);
  const auto record = api_->Get(kube::ConfigMaps(), "default", "digits-record");
  ASSERT_TRUE(record);
  EXPECT_EQ((*record)["metadata"]["ownerReferences"][0]["name"], "digits");
}

TEST_F(JobControllerTest, ScalesUpAndDown) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  Change({{"worker", {{"replicas", 5}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3, 4}));
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(TrainsAs({0, 1}));
  EXPECT_TRUE(cluster_->WasTold("digits-worker-0", "Drain")) << "the coordinator";
  EXPECT_TRUE(cluster_->WasTold("digits-worker-4", "Drain")) << "the pod itself";
}

TEST_F(JobControllerTest, APodThatFailsIsReplaced) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  cluster_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAs({0, 2, 3}));
  EXPECT_EQ(Status().pods_replaced, 1);
  EXPECT_EQ(Status().faults, 0);
}

TEST_F(JobControllerTest, APodThatIsDeletedIsReplaced) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-0", {}));
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({1, 2, 3}) || Pods() == Names({0, 1, 2}); }));
  ASSERT_TRUE(Eventually([&] { return Status().world_size == 3 && Status().state == "Running"; }));
}

TEST_F(JobControllerTest, AnAnnotatedPodIsDrainedAndReplaced) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-2",
                          {{"metadata", {{"annotations", {{planner::kDrainAnnotation, "try"}}}}}},
                          {}));
  ASSERT_TRUE(TrainsAs({0, 1, 3}));
  EXPECT_TRUE(cluster_->WasTold("digits-worker-2", "Drain"));
}

TEST_F(JobControllerTest, SuspendsAndResumesInANewLineage) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  Change({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Eventually([&] { return Pods().empty() && Status().state == "Suspended"; }));
  Change({{"runPolicy", {{"suspend", false}}}});
  // Which indexes: a pod that the cache still has keeps its name to itself.
  ASSERT_TRUE(Eventually([&] {
    const api::Status status = Status();
    return Pods().size() == 2 && cluster_->Members() == Pods() && status.state == "Running" &&
           status.epoch == cluster_->epoch() && status.ring.size() == 2;
  }));
  EXPECT_EQ(membership::EpochLineage(Status().epoch), 2u);
}

class GangAdmissionTest : public JobControllerTest {
 protected:
  GangAdmissionTest() {
    controller_->Stop();
    gang_ = true;
    RestartOperator();
  }
  void AddNode(const std::string& name, const char* gpus) {
    const auto made =
        api_->Create(kube::Nodes(), "",
                     {{"apiVersion", "v1"},
                      {"kind", "Node"},
                      {"metadata", {{"name", name}}},
                      {"status", {{"allocatable", {{"gpu", gpus}, {"pods", "110"}}}}}});
    ASSERT_TRUE(made) << made.error().message;
  }
  std::size_t Gated() {
    std::size_t gated = 0;
    const auto pods = api_->ListAll(kube::Pods(), "default", {});
    for (const Json& pod : pods->items) {
      gated += pod["spec"].value("schedulingGates", Json::array()).empty() ? 0 : 1;
    }
    return gated;
  }
  const Json with_gpus_ = Json::parse(R"({"worker": {"template": {"spec": {"containers": [
      {"name": "worker", "image": "digits", "command": ["train"],
       "resources": {"requests": {"gpu": "1"}, "limits": {"gpu": "1"}}}]}}}})");
};

TEST_F(GangAdmissionTest, NothingStartsUntilTheLeastFitTogetherAndTheRestFollowsTheRoom) {
  AddNode("node-1", "1");
  Apply(3, with_gpus_);
  ASSERT_TRUE(Eventually([&] {
    const api::Status status = Status();
    const auto* scheduled = status.Find("Scheduled");
    return Gated() == 3 && scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  }));
  EXPECT_NE(Status().Find("Scheduled")->message.find("minReplicas is 2"), std::string::npos);
  AddNode("node-2", "1");
  ASSERT_TRUE(Eventually([&] { return Status().world_size == 2 && Gated() == 1; }));
  AddNode("node-3", "1");
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
}

TEST_F(JobControllerTest, AFinishedJobSucceeds) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  cluster_->FinishJob();
  ASSERT_TRUE(Eventually([&] { return Status().Is("Succeeded"); }));
  EXPECT_EQ(Status().worker.succeeded, 2);
  EXPECT_EQ(Status().state, "Succeeded");
}

TEST_F(JobControllerTest, AScriptThatExitsWithOneFailsTheJob) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  cluster_->EndPod("digits-worker-1", 1);
  ASSERT_TRUE(Eventually([&] { return Status().Is("Failed") && Pods() == Names({1}); }))
      << "the running pod is removed, the failed one stays to be looked at";
}

TEST_F(JobControllerTest, AnOperatorThatStartsAnewDisturbsNothingAndGoesOn) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  const std::uint64_t before = cluster_->epoch();
  RestartOperator();
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  EXPECT_EQ(cluster_->epoch(), before);
  Change({{"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3}));
}

TEST_F(JobControllerTest, AnOperatorThatDiedInTheMiddleOfADrainEndsIt) {
  Apply(3);
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  controller_->Stop();
  ASSERT_TRUE(api_->Patch(
      kube::Pods(), "default", "digits-worker-1",
      {{"metadata",
        {{"annotations",
          {{planner::kDrainAnnotation, "try"},
           {planner::kDrainSinceAnnotation, api::FormatTime(std::chrono::system_clock::now())}}}}}},
      {}));
  RestartOperator();
  ASSERT_TRUE(TrainsAs({0, 2, 3}));
}

TEST_F(JobControllerTest, WorkersRestartedInPlaceAreCountedOnce) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  cluster_->RestartWorker("digits-worker-1", 139);
  cluster_->RestartWorker("digits-worker-1", 137);
  ASSERT_TRUE(Eventually([&] { return Status().worker_restarts == 2; }));
  EXPECT_EQ(Status().faults, 1) << "a crash is the application's fault, a kill is not";
}

// An API server whose schema is not of this version may let through what the parser refuses.
class JobControllerWithoutSchemaTest : public JobControllerTest {
 protected:
  JobControllerWithoutSchemaTest() : JobControllerTest("") {}
};

TEST_F(JobControllerWithoutSchemaTest, AJobThatMakesNoSenseIsRefusedByCondition) {
  Apply(2, {{"worker", {{"template", {{"spec", {{"nodeSelectors", Json::object()}}}}}}}});
  ASSERT_TRUE(Eventually([&] { return Status().state == "Invalid"; }));
  const auto status = Status();
  ASSERT_NE(status.Find("Created"), nullptr);
  EXPECT_THAT(status.Find("Created")->message, testing::HasSubstr("did you mean \"nodeSelector\""));
  EXPECT_TRUE(Pods().empty());
}

TEST_F(JobControllerTest, ALostPodThatIsForceDeletedStaysUntilItsNodeIsOutOfService) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ForceDelete("digits-worker-2");
  ASSERT_TRUE(Eventually([&] {
    return cluster_->Members() == Names({0, 1, 3});
  })) << "it is replaced all the same";
  ASSERT_TRUE(HasFinalizer(PodObject("digits-worker-2")));
  // Another look at the job, which changes nothing: there is no proof.
  Change({{"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(Eventually([&] { return cluster_->Members() == Names({0, 1, 3, 4}); }));
  ASSERT_TRUE(HasFinalizer(PodObject("digits-worker-2")));
  PatchNode("node-2", {{"status", {{"conditions", {{{"type", "Ready"}, {"status", "Unknown"}}}}}}},
            "status");
  PatchNode(
      "node-2",
      {{"spec", {{"taints", {{{"key", planner::kOutOfServiceTaint}, {"effect", "NoExecute"}}}}}}});
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1, 3, 4}); }));
  EXPECT_TRUE(Eventually([&] { return HasEvent("ProvenDead"); }));
}

TEST_F(JobControllerTest, TheRebootOfItsNodeProvesThatAPodIsDead) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  PatchNode("node-2", {{"status", {{"nodeInfo", {{"bootID", "boot-2"}}}}}}, "status");
  ASSERT_TRUE(TrainsAs({0, 1, 3})) << "nobody had to delete it";
  EXPECT_EQ(Status().pods_replaced, 1);
  EXPECT_EQ(Status().faults, 0);
}

TEST_F(JobControllerTest, OnACordonAnotherPodComesFirstAndThenThePodLeaves) {
  AddNodes();
  Apply(2);  // minReplicas: a drain would wait for ever for a third pod
  ASSERT_TRUE(TrainsAs({0, 1}));
  node_ = "node-2";
  Cordon("node-1");
  ASSERT_TRUE(TrainsAs({2, 3}));
  EXPECT_TRUE(HasEvent("DisruptionAnnounced"));
  EXPECT_TRUE(cluster_->WasTold("digits-worker-0", "Drain"));
}

TEST_F(JobControllerTest, ACordonThatIsTakenBackLeavesTheJobAsItWas) {
  AddNodes();
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  cluster_->NeverReady("digits-worker-2");
  cluster_->NeverReady("digits-worker-3");
  node_ = "node-2";
  Cordon("node-1");
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1, 2, 3}); }));
  Cordon("node-1", false);
  ASSERT_TRUE(Eventually([&] { return Pods() == Names({0, 1}); }));
  EXPECT_EQ(cluster_->Members(), Names({0, 1}));
  EXPECT_EQ(Annotation("digits-worker-0", planner::kWarnedAnnotation), "");
}

TEST_F(JobControllerTest, NobodyHoldsThePodsOfAJobThatIsDeleted) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}));
  ForceDelete("digits-worker-2");
  ASSERT_TRUE(Eventually([&] { return Pods().empty(); }));
}

TEST_F(JobControllerTest, NobodyHoldsThePodsOfAJobThatIsDeletedInTheForeground) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Foreground"}));
  ForceDelete("digits-worker-2");
  ASSERT_TRUE(Eventually(
      [&] { return Pods().empty() && !api_->Get(kube::HorovodJobs(), "default", "digits"); }));
}

TEST_F(JobControllerTest, PodsThatLostTheirJobWhileNoOperatorRanAreLetGo) {
  ASSERT_NO_FATAL_FAILURE(LoseAPodOnNode2());
  controller_->Stop();
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}));
  ForceDelete("digits-worker-2");
  ASSERT_FALSE(PodObject("digits-worker-2").is_null());
  RestartOperator();
  ASSERT_TRUE(Eventually([&] { return Pods().empty(); }));
}

TEST_F(JobControllerTest, UninstallingTakesTheFinalizerOffEveryPodAndNothingElse) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  ASSERT_TRUE(api_->Patch(
      kube::Pods(), "default", "digits-worker-0",
      {{"metadata", {{"finalizers", {"example.com/mine", planner::kProofFinalizer}}}}}, {}));
  controller_->Stop();
  const auto cleared = ClearFinalizers(*api_, "");
  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_EQ(*cleared, 2);
  EXPECT_EQ(PodObject("digits-worker-0")["metadata"]["finalizers"],
            Json::array({"example.com/mine"}));
  EXPECT_FALSE(HasFinalizer(PodObject("digits-worker-1")));
  EXPECT_EQ(*ClearFinalizers(*api_, ""), 0);
}

TEST_F(JobControllerTest, WithoutRightsOnNodesJobsRunWithoutEarlyWarning) {
  AddNodes();
  api_->nodes_forbidden = true;
  RestartOperator();
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  Cordon("node-1");
  cluster_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAs({0, 2}));
  EXPECT_FALSE(HasEvent("DisruptionAnnounced"));
}

TEST_F(JobControllerTest, EventsTellTheStory) {
  Apply(2);
  ASSERT_TRUE(TrainsAs({0, 1}));
  cluster_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAs({0, 2}));
  std::vector<std::string> reasons;
  ASSERT_TRUE(Eventually([&] {
    reasons.clear();
    const auto events = api_->ListAll(kube::Events(), "default", {});
    for (const Json& event : events->items) {
      reasons.push_back(event.value("reason", ""));
    }
    return std::count(reasons.begin(), reasons.end(), "PodFailed") == 1 &&
           std::count(reasons.begin(), reasons.end(), "PodLost") == 1;
  })) << testing::PrintToString(reasons);
  EXPECT_THAT(reasons, Contains("PodCreated"));
}

}  // namespace
}  // namespace ringmaster::controllers
