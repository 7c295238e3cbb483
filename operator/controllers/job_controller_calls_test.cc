// What the controller asks of the API server, and of whom: preconditions, whose objects it touches,
// and what it leaves alone while the API server refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "operator/controllers/job_controller.h"
#include "operator/controllers/pod_marks.h"
#include "operator/controllers/testing/fake_cluster.h"
#include "operator/local/in_memory_api.h"
#include "operator/local/store.h"
#include "operator/planner/planner.h"
#include "operator/planner/proof.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using std::chrono::milliseconds;
using support::Until;
using testing::HasSubstr;

struct Call {
  std::string verb;
  std::string resource;
  std::string name;
  Json body;  // of a delete: its uid
};

// The store. A test sees every call and may refuse it, and lists of one job's pods may have more.
class WatchedApi : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  using Refuse = std::function<std::optional<ErrorCode>(const Call&)>;

  void SetRefuse(Refuse refuse) {
    const std::lock_guard lock(mu_);
    refuse_ = std::move(refuse);
  }
  void SetExtraPods(std::vector<Json> pods) {
    const std::lock_guard lock(mu_);
    extra_ = std::move(pods);
  }
  std::vector<Call> Calls(const std::string& verb, const std::string& resource) const {
    const std::lock_guard lock(mu_);
    std::vector<Call> calls;
    for (const Call& call : calls_) {
      if (call.verb == verb && call.resource == resource) calls.push_back(call);
    }
    return calls;
  }

  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    if (auto error = Note({"get", resource.plural, name, {}})) return tl::unexpected(*error);
    return InMemoryApi::Get(resource, ns, name);
  }
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    if (auto error = Note({"list", resource.plural, options.label_selector, {}})) {
      return tl::unexpected(*error);
    }
    auto list = InMemoryApi::ListAll(resource, ns, options);
    const std::lock_guard lock(mu_);
    if (list && options.label_selector.find(planner::kJobNameLabel) != std::string::npos) {
      list->items.insert(list->items.end(), extra_.begin(), extra_.end());
    }
    return list;
  }
  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    if (auto error =
            Note({"create", resource.plural, runtime::MetaField(object, "name"), object})) {
      return tl::unexpected(*error);
    }
    return InMemoryApi::CreateWith(resource, ns, object, options);
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    if (auto error = Note({"patch", resource.plural, name, patch})) return tl::unexpected(*error);
    return InMemoryApi::Patch(resource, ns, name, patch, options);
  }
  kube::Result<Json> Update(const kube::Resource& resource, const std::string& ns,
                            const Json& object, const std::string& subresource) override {
    if (auto error =
            Note({"update", resource.plural, runtime::MetaField(object, "name"), object})) {
      return tl::unexpected(*error);
    }
    return InMemoryApi::Update(resource, ns, object, subresource);
  }
  kube::Result<void> Delete(const kube::Resource& resource, const std::string& ns,
                            const std::string& name, const kube::DeleteOptions& options) override {
    if (auto error = Note({"delete", resource.plural, name, options.uid})) {
      return tl::unexpected(*error);
    }
    return InMemoryApi::Delete(resource, ns, name, options);
  }

 private:
  std::optional<kube::Error> Note(Call call) {
    const std::lock_guard lock(mu_);
    const auto code = refuse_ ? refuse_(call) : std::nullopt;
    calls_.push_back(std::move(call));
    if (!code) return std::nullopt;
    return kube::Error{.code = *code, .message = "the test says no"};
  }
  mutable std::mutex mu_;
  Refuse refuse_;            // guarded by mu_
  std::vector<Json> extra_;  // guarded by mu_
  std::vector<Call> calls_;  // guarded by mu_
};

std::string Crd() {
  std::ifstream file(RM_CRD_FILE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class JobControllerCallsTest : public testing::Test {
 protected:
  explicit JobControllerCallsTest(const std::string& crd = Crd())
      : store_(std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = crd})) {
    StartOperator();
  }
  ~JobControllerCallsTest() override {
    controller_->Stop();
    cluster_.reset();
    store_->Close();
  }
  void StartOperator(bool gang = false) {
    if (controller_ != nullptr) controller_->Stop();
    if (hub_ != nullptr) old_hubs_.push_back(std::move(hub_));
    hub_ = std::make_unique<SidecarHub>();
    records_ = std::make_unique<RecordStore>(api_);
    JobControllerOptions options;
    options.pod.sidecar_target = "unix:/tmp/operator.sock";
    options.queue.first_backoff = milliseconds(5);
    options.queue.max_backoff = milliseconds(100);
    options.gang_admission = options.pod.gang_gate = gang;
    controller_ = std::make_unique<JobController>(api_, hub_.get(), records_.get(), options);
    const auto started = controller_->Start();
    ASSERT_TRUE(started) << started.error().message;
    if (cluster_ != nullptr) return cluster_->MoveTo(hub_.get());
    cluster_ = std::make_unique<FakeCluster>(
        api_, "default", hub_.get(),
        [this](const std::string& pod) { (void)store_->Bind("default", pod, "n"); });
  }
  static Json JobNamed(const std::string& name, const Json& spec) {
    Json job = Json::parse(R"({
      "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {},
      "spec": {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 8}, "worker": {"replicas": 2,
        "template": {"spec": {"containers": [
        {"name": "worker", "image": "digits", "command": ["train"]}]}}}}})");
    job["metadata"]["name"] = name;
    job["spec"].merge_patch(spec);
    return job;
  }
  Json Apply(const std::string& name = "digits", const Json& spec = Json::object()) {
    const auto created = api_->Create(kube::HorovodJobs(), "default", JobNamed(name, spec));
    EXPECT_TRUE(created) << created.error().message;
    return created ? *created : Json();
  }
  void Change(const Json& spec) {
    ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits", {{"spec", spec}}, {}));
  }
  // Looks like a pod of the job `job`, made by nobody here.
  Json Stranger(const std::string& name, const std::string& job, const std::string& owner_uid) {
    Json pod = {{"metadata",
                 {{"name", name},
                  {"namespace", "default"},
                  {"labels",
                   {{planner::kJobNameLabel, job},
                    {planner::kJobRoleLabel, "worker"},
                    {planner::kReplicaIndexLabel, "7"}}},
                  {"finalizers", {planner::kProofFinalizer}}}},
                {"spec",
                 {{"schedulingGates", {{{"name", "example.com/not-yet"}}}},
                  {"containers", {{{"name", "worker"}, {"image", "i"}}}}}}};
    if (!owner_uid.empty()) {
      pod["metadata"]["ownerReferences"] = {{{"apiVersion", api::kApiVersion},
                                             {"kind", api::kKind},
                                             {"name", job},
                                             {"uid", owner_uid},
                                             {"controller", true}}};
    }
    return pod;
  }
  Json Get(const kube::Resource& resource, const std::string& name) {
    const auto object = store_api_.Get(resource, "default", name);
    return object ? *object : Json();
  }
  api::Status Status(const std::string& job = "digits") {
    return api::StatusFromJson(Get(kube::HorovodJobs(), job).value("status", Json::object()));
  }
  bool Trains(std::size_t pods) {
    return Until([&] {
      const api::Status status = Status();
      return status.state == "Running" && status.ring.size() == pods &&
             cluster_->Members().size() == pods;
    });
  }

  const std::shared_ptr<local::Store> store_;
  local::InMemoryApi store_api_{store_};  // the test's own look
  const std::shared_ptr<WatchedApi> api_ = std::make_shared<WatchedApi>(store_);
  std::vector<std::unique_ptr<SidecarHub>> old_hubs_;
  std::unique_ptr<SidecarHub> hub_;
  std::unique_ptr<RecordStore> records_;
  std::unique_ptr<JobController> controller_;
  std::unique_ptr<FakeCluster> cluster_;
};

TEST_F(JobControllerCallsTest, EveryDeletionNamesTheUidThatItMeans) {
  Apply("digits", {{"runPolicy", {{"ttlSecondsAfterFinished", 0}}}});
  ASSERT_TRUE(Trains(2));
  const std::string uid = runtime::MetaField(Get(kube::HorovodJobs(), "digits"), "uid");
  Change({{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(Trains(3));
  Change({{"worker", {{"replicas", 2}}}});
  ASSERT_TRUE(Until([&] { return !api_->Calls("delete", "pods").empty(); }));
  ASSERT_TRUE(Trains(2));
  const std::size_t fakes = 1;  // the fake kubelet's own has no uid, and no need of one
  std::size_t without = 0;
  for (const Call& call : api_->Calls("delete", "pods")) without += call.body == "" ? 1 : 0;
  EXPECT_LE(without, fakes);
  cluster_->EndPod("digits-worker-1", 1);
  ASSERT_TRUE(Until([&] { return !api_->Calls("delete", "horovodjobs").empty(); }));
  EXPECT_EQ(api_->Calls("delete", "horovodjobs")[0].body, uid);
}

TEST_F(JobControllerCallsTest, AGateIsLiftedFromTheVersionThatWasReadAndOthersStay) {
  StartOperator(true);
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", "n"}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  Json template_spec = {{"schedulingGates", {{{"name", "example.com/mine"}}}}};
  Apply("digits", {{"worker", {{"template", {{"spec", template_spec}}}}}});
  ASSERT_TRUE(Until([&] {
    const Json pod = Get(kube::Pods(), "digits-worker-1");
    return pod.is_object() && pod["spec"].value("schedulingGates", Json()) ==
                                  Json::array({{{"name", "example.com/mine"}}});
  }));
  for (const Call& call : api_->Calls("patch", "pods")) {
    if (!call.body.contains("spec")) continue;
    EXPECT_NE(call.body["metadata"].value("resourceVersion", ""), "") << call.body;
  }
}

TEST_F(JobControllerCallsTest, RoomThatAPodTakesBesideItsContainersIsTaken) {
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", "n"}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  const Json spec = {{"nodeName", "n"},
                     {"resources", {{"requests", {{"cpu", "4"}}}}},
                     {"overhead", {{"cpu", "3"}}},
                     {"containers", {{{"name", "main"}, {"image", "i"}}}}};
  ASSERT_TRUE(api_->Create(kube::Pods(), "kube-system",
                           {{"metadata", {{"name", "large"}}}, {"spec", spec}}));
  StartOperator(true);
  const Json worker = {{"name", "worker"},
                       {"image", "digits"},
                       {"command", {"train"}},
                       {"resources", {{"requests", {{"cpu", "1"}}}}}};
  Apply("digits", {{"worker", {{"template", {{"spec", {{"containers", {worker}}}}}}}}});
  ASSERT_TRUE(Until([&] {
    const api::Status status = Status();
    return status.Find("Scheduled") != nullptr &&
           status.Find("Scheduled")->reason == "WaitingForRoom";
  }));
  ASSERT_TRUE(api_->Delete(kube::Pods(), "kube-system", "large", {.grace_period_seconds = 0}));
  EXPECT_TRUE(Trains(2));
}

TEST_F(JobControllerCallsTest, AJobThatAnotherManagesIsLeftAlone) {
  Apply("digits", {{"runPolicy", {{"managedBy", "kueue.x-k8s.io/multikueue"}}}});
  Apply("ours");
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "ours-worker-1").is_null(); }));
  EXPECT_TRUE(Get(kube::Pods(), "digits-worker-0").is_null());
  EXPECT_FALSE(Get(kube::HorovodJobs(), "digits").contains("status"));
}

TEST_F(JobControllerCallsTest, APodThatOnlyLooksLikeOneOfTheJobIsNeitherCountedNorDrained) {
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("stranger", "digits", "")));
  Apply();
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(Status().replicas, 2);
  for (const Call& call : api_->Calls("patch", "pods")) {
    if (call.name != "stranger") continue;
    EXPECT_EQ(call.body.dump().find("drain"), std::string::npos);
  }
}

TEST_F(JobControllerCallsTest, ANameThatIsTakenIsSaidAndThePodThereIsLeft) {
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("digits-worker-0", "other", "")));
  Apply();
  ASSERT_TRUE(Until([&] {
    const api::Status status = Status();
    const auto* created = status.Find("Created");
    return created != nullptr && created->reason == "PodNameTaken";
  }));
  EXPECT_FALSE(Get(kube::Pods(), "digits-worker-0").is_null());
}

// Two jobs in one namespace; the other one is nobody's to touch.
class OtherJobTest : public JobControllerCallsTest {
 protected:
  void MakeOther() {
    const Json other = Apply("other", {{"runPolicy", {{"managedBy", "example.com/another"}}}});
    ASSERT_TRUE(
        api_->Create(kube::Pods(), "default",
                     Stranger("other-worker-7", "other", runtime::MetaField(other, "uid"))));
  }
  void ExpectUntouched() {
    const Json pod = Get(kube::Pods(), "other-worker-7");
    ASSERT_FALSE(pod.is_null());
    EXPECT_TRUE(HasFinalizer(pod));
    EXPECT_FALSE(pod["metadata"].contains("deletionTimestamp"));
  }
};

TEST_F(OtherJobTest, ADeletionTakesItsOwnPodsAlone) {
  MakeOther();
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Foreground"}));
  ASSERT_TRUE(Until([&] { return Get(kube::HorovodJobs(), "digits").is_null(); }));
  ExpectUntouched();
}

TEST_F(OtherJobTest, PodsAreNoOrphansWhileNobodyKnowsWhetherTheirJobLives) {
  Apply();
  ASSERT_TRUE(Trains(2));
  controller_->Stop();
  // Its owner is unknown to the cache, and the API server doesn't answer.
  ASSERT_TRUE(api_->Create(kube::Pods(), "default", Stranger("lost-worker-7", "lost", "")));
  std::atomic<int> asked = 0;
  api_->SetRefuse([&](const Call& call) -> std::optional<ErrorCode> {
    if (call.verb != "get" || call.resource != "horovodjobs") return std::nullopt;
    ++asked;
    return ErrorCode::kUnavailable;
  });
  StartOperator();
  ASSERT_TRUE(Until([&] { return asked > 2; }));
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "lost-worker-7")));
  api_->SetRefuse(nullptr);
  EXPECT_TRUE(Until([&] { return !HasFinalizer(Get(kube::Pods(), "lost-worker-7")); }));
}

TEST_F(JobControllerCallsTest, NobodyIsToldOfAViewBeforeItsPodIsMarked) {
  api_->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
    const bool marks = call.verb == "patch" && call.resource == "pods" &&
                       call.body.dump().find(planner::kHttpAnnotation) != std::string::npos;
    return marks ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  Apply();
  ASSERT_TRUE(Until([&] { return !Get(kube::ConfigMaps(), "digits-record").is_null(); }));
  ASSERT_TRUE(Until([&] { return cluster_->WasTold("digits-worker-0", "Target"); }));
  const std::size_t tries = api_->Calls("patch", "pods").size();
  ASSERT_TRUE(Until([&] { return api_->Calls("patch", "pods").size() > tries + 4; }));
  EXPECT_FALSE(cluster_->WasTold("digits-worker-0", "Found"));
  api_->SetRefuse(nullptr);
  EXPECT_TRUE(Trains(2));
}

TEST_F(JobControllerCallsTest, ALineageBeginsOnlyIfThePodsAsTheyAreListedAllowIt) {
  Apply();
  ASSERT_TRUE(Trains(2));
  Change({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Until([&] {
    return Status().state == "Suspended" && Get(kube::Pods(), "digits-worker-0").is_null();
  }));
  // One of which the cache knows nothing may be in a view.
  const std::string uid = runtime::MetaField(Get(kube::HorovodJobs(), "digits"), "uid");
  Json hidden = Stranger("digits-worker-7", "digits", uid);
  hidden["metadata"]["uid"] = "hidden";
  hidden["metadata"]["annotations"] = {{planner::kHttpAnnotation, "10.0.0.9:1"}};
  api_->SetExtraPods({hidden});
  const auto looks = [&] {
    std::size_t n = 0;
    for (const Call& call : api_->Calls("list", "pods")) {
      n += call.name.find(planner::kJobNameLabel) != std::string::npos ? 1 : 0;
    }
    return n;
  };
  Change({{"runPolicy", {{"suspend", false}}}});
  ASSERT_TRUE(Until([&] { return looks() >= 3; }));
  EXPECT_EQ(membership::EpochLineage((*records_->Newest({"default", "digits", uid}))->view->epoch),
            1u);
  api_->SetExtraPods({});
  ASSERT_TRUE(Trains(2));
  EXPECT_EQ(membership::EpochLineage(Status().epoch), 2u);
}

TEST_F(JobControllerCallsTest, EventsAboutAPodNameThePod) {
  Apply();
  ASSERT_TRUE(Trains(2));
  cluster_->EndPod("digits-worker-1", 137);
  const auto failed = [&] {
    for (const Call& call : api_->Calls("create", "events")) {
      if (call.body.value("reason", "") == "PodFailed") return call.body;
    }
    return Json();
  };
  ASSERT_TRUE(Until([&] { return !failed().is_null(); }));
  EXPECT_EQ(failed()["regarding"]["kind"], "Pod");
  EXPECT_EQ(failed()["regarding"]["name"], "digits-worker-1");
}

TEST_F(JobControllerCallsTest, AStatusThatSaysTheSameIsNotWrittenAgain) {
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(Until([&] { return controller_->state().queue.depth == 0; }));
  const std::size_t before = api_->Calls("update", "horovodjobs").size();
  // Looks at the job that change nothing.
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t adds = controller_->state().queue.adds;
    ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-0",
                            {{"metadata", {{"annotations", {{"n", std::to_string(i)}}}}}}, {}));
    ASSERT_TRUE(Until([&] {
      const auto queue = controller_->state().queue;
      return queue.adds > adds && queue.depth == 0;
    }));
  }
  EXPECT_EQ(api_->Calls("update", "horovodjobs").size(), before);
}

TEST_F(JobControllerCallsTest, AReplacementAvoidsTheNodeThatLostThePod) {
  Apply();
  ASSERT_TRUE(Trains(2));
  ASSERT_TRUE(api_->Patch(kube::Pods(), "default", "digits-worker-1",
                          {{"status", {{"phase", "Failed"}, {"reason", "Evicted"}}}},
                          {.subresource = "status"}));
  ASSERT_TRUE(Until([&] { return !Get(kube::Pods(), "digits-worker-2").is_null(); }));
  EXPECT_THAT(Get(kube::Pods(), "digits-worker-2")["spec"]["affinity"].dump(),
              HasSubstr(R"("operator":"NotIn","values":["n"])"));
}

TEST_F(JobControllerCallsTest, ADeathThatSomebodyVouchesForIsForcedByUid) {
  Apply();
  ASSERT_TRUE(Trains(2));
  const std::string uid = runtime::MetaField(Get(kube::Pods(), "digits-worker-1"), "uid");
  cluster_->LosePod("digits-worker-1");
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-1", {.uid = uid}));
  const std::size_t before = api_->Calls("delete", "pods").size();
  ASSERT_TRUE(api_->Patch(
      kube::Pods(), "default", "digits-worker-1",
      {{"metadata", {{"annotations", {{planner::kProvenAnnotation, "unplugged"}}}}}}, {}));
  ASSERT_TRUE(Until(
      [&] { return runtime::MetaField(Get(kube::Pods(), "digits-worker-1"), "uid") != uid; }));
  const auto deletes = api_->Calls("delete", "pods");
  ASSERT_GT(deletes.size(), before);
  EXPECT_EQ(deletes[before].name, "digits-worker-1");
  EXPECT_EQ(deletes[before].body, uid);
}

// An API server whose schema lets through what the parser refuses.
class InvalidJobTest : public JobControllerCallsTest {
 protected:
  InvalidJobTest() : JobControllerCallsTest("") {}
};

TEST_F(InvalidJobTest, IsRefusedOnceForEachChange) {
  Apply("digits", {{"worker", {{"template", {{"spec", {{"nodeSelectors", Json::object()}}}}}}}});
  ASSERT_TRUE(Until([&] { return Status().state == "Invalid"; }));
  const std::uint64_t adds = controller_->state().queue.adds;
  ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits",
                          {{"metadata", {{"annotations", {{"a", "b"}}}}}}, {}));
  ASSERT_TRUE(Until([&] {
    const auto queue = controller_->state().queue;
    return queue.adds > adds && queue.depth == 0;
  }));
  EXPECT_EQ(api_->Calls("update", "horovodjobs").size(), 1u);
}

class CachesTest : public testing::Test {
 protected:
  kube::Result<void> Start(JobControllerOptions options, std::stop_token stop = {}) {
    const auto api = std::make_shared<WatchedApi>(
        std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = Crd()}));
    api->SetRefuse([](const Call& call) -> std::optional<ErrorCode> {
      return call.verb == "list" ? std::optional(ErrorCode::kForbidden) : std::nullopt;
    });
    SidecarHub hub;
    RecordStore records(api);
    JobController controller(api, &hub, &records, std::move(options));
    return controller.Start(stop);
  }
};

TEST_F(CachesTest, ThatCanNotBeFilledAreNamedInTime) {
  const auto started = Start({.sync_timeout = milliseconds(50)});
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("the test says no"));
}

TEST_F(CachesTest, AreWaitedForOnlyUntilTheStop) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(Start({}, stop.get_token()).error().message, HasSubstr("stopped"));
}

}  // namespace
}  // namespace ringmaster::controllers
