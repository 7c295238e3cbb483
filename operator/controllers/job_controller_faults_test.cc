// An API server that refuses: the controller says so, and does not turn round hot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "operator/controllers/job_controller.h"
#include "operator/controllers/testing/fake_cluster.h"
#include "operator/local/in_memory_api.h"
#include "operator/local/store.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using testing::HasSubstr;

// The store, with writes that can be refused, and counted.
class RefusingApi : public local::InMemoryApi {
 public:
  using local::InMemoryApi::InMemoryApi;

  void RefuseCreates(std::optional<kube::Error> error) {
    const std::lock_guard lock(mu_);
    refusal_ = std::move(error);
  }
  // Of this resource only.
  void Refuse(const kube::Resource& resource, std::optional<kube::Error> error) {
    const std::lock_guard lock(mu_);
    refused_ = resource;
    one_refusal_ = std::move(error);
  }
  int pod_creates() const { return pod_creates_; }
  int record_creates() const { return record_creates_; }
  int writes() const { return writes_; }

  kube::Result<Json> Create(const kube::Resource& resource, const std::string& ns,
                            const Json& object) override {
    return CreateWith(resource, ns, object, {});
  }
  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    ++writes_;
    if (resource == kube::Pods()) ++pod_creates_;
    if (resource == kube::ConfigMaps()) ++record_creates_;
    const std::lock_guard lock(mu_);
    if (one_refusal_ && resource == refused_) return tl::unexpected(*one_refusal_);
    const bool by_controller =
        !(resource == kube::HorovodJobs()) && !(resource == kube::Namespaces());
    if (refusal_ && by_controller) return tl::unexpected(*refusal_);
    return InMemoryApi::CreateWith(resource, ns, object, options);
  }
  kube::Result<Json> Update(const kube::Resource& resource, const std::string& ns,
                            const Json& object, const std::string& subresource) override {
    ++writes_;
    return InMemoryApi::Update(resource, ns, object, subresource);
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    ++writes_;
    return InMemoryApi::Patch(resource, ns, name, patch, options);
  }

 private:
  std::mutex mu_;
  std::optional<kube::Error> refusal_, one_refusal_;  // guarded by mu_
  kube::Resource refused_;                            // guarded by mu_
  std::atomic<int> pod_creates_{0}, record_creates_{0}, writes_{0};
};

class JobControllerFaultsTest : public testing::Test {
 protected:
  JobControllerFaultsTest() {
    std::ifstream file(RM_CRD_FILE);
    std::stringstream crd;
    crd << file.rdbuf();
    store_ = std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = crd.str()});
    api_ = std::make_shared<RefusingApi>(store_);
    records_ = std::make_unique<RecordStore>(api_);
    JobControllerOptions options;
    options.pod.sidecar_target = "unix:/tmp/operator.sock";
    options.queue.first_backoff = milliseconds(50);
    controller_ = std::make_unique<JobController>(api_, &hub_, records_.get(), options);
    EXPECT_TRUE(controller_->Start());
  }
  ~JobControllerFaultsTest() override {
    controller_->Stop();
    store_->Close();
  }

  void Apply(const std::string& ns = "default") {
    const Json job = Json::parse(R"({
      "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob",
      "metadata": {"name": "digits"},
      "spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 8},
        "worker": {"replicas": 2, "template": {"spec": {"containers": [
        {"name": "worker", "image": "digits", "command": ["train"]}]}}}}})");
    const auto created = api_->Create(kube::HorovodJobs(), ns, job);
    ASSERT_TRUE(created) << created.error().message;
  }
  std::vector<Json> Events(const std::string& reason) {
    std::vector<Json> found;
    const auto events = api_->ListAll(kube::Events(), "default", {});
    for (const Json& event : events->items) {
      if (event.value("reason", "") == reason) found.push_back(event);
    }
    return found;
  }
  api::Condition Created() {
    const auto job = api_->Get(kube::HorovodJobs(), "default", "digits");
    const auto status = api::StatusFromJson(job->value("status", Json::object()));
    const api::Condition* created = status.Find("Created");
    return created == nullptr ? api::Condition{} : *created;
  }
  static bool Until(const std::function<bool()>& so, milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!so()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
  }
  static bool Until(const std::function<bool()>& so) { return Until(so, milliseconds(20'000)); }

  std::shared_ptr<local::Store> store_;
  std::shared_ptr<RefusingApi> api_;
  SidecarHub hub_;
  std::unique_ptr<RecordStore> records_;
  std::unique_ptr<JobController> controller_;
};

TEST_F(JobControllerFaultsTest, RefusedPodsAreTriedAgainMoreAndMoreSlowlyAndLaterMade) {
  api_->RefuseCreates(kube::Error{
      .code = kube::ErrorCode::kForbidden, .http_status = 403, .message = "exceeded quota: team"});
  Apply();
  ASSERT_TRUE(Until([&] { return api_->pod_creates() >= 2; }));
  (void)Until([] { return false; }, milliseconds(1500));
  // 50, 100, 200, 400, 800 ms: five rounds of two pods, and one or two for news of the job itself.
  EXPECT_LE(api_->pod_creates(), 2 * 8);
  EXPECT_GE(api_->pod_creates(), 4);
  api_->RefuseCreates(std::nullopt);
  EXPECT_TRUE(Until([&] {
    const auto pods = api_->ListAll(kube::Pods(), "default", {});
    return pods && pods->items.size() == 2;
  }));
}

TEST_F(JobControllerFaultsTest, LookingAtTheJobForOtherReasonsIsNoNewTry) {
  api_->RefuseCreates(kube::Error{
      .code = kube::ErrorCode::kForbidden, .http_status = 403, .message = "exceeded quota: team"});
  Apply();
  ASSERT_TRUE(Until([&] { return api_->pod_creates() >= 3; }));
  const int before = api_->pod_creates();
  for (int i = 0; i < 40; ++i) {
    const auto touched =
        api_->Patch(kube::HorovodJobs(), "default", "digits",
                    {{"metadata", {{"annotations", {{"touched", std::to_string(i)}}}}}}, {});
    ASSERT_TRUE(touched) << touched.error().message;
    (void)Until([] { return false; }, milliseconds(10));
  }
  EXPECT_LE(api_->pod_creates() - before, 3) << "200, 400, 800 ms";
}

TEST_F(JobControllerFaultsTest, TheEventSaysWhyAPodWasRefusedOnceAndCounts) {
  api_->Refuse(kube::Pods(),
               kube::Error{.code = kube::ErrorCode::kForbidden, .message = "exceeded quota: team"});
  Apply();
  const auto failed = [&] { return Events("FailedCreate"); };
  ASSERT_TRUE(Until([&] { return api_->pod_creates() >= 6; }));
  ASSERT_TRUE(Until([&] { return !failed().empty(); }));
  EXPECT_LE(failed().size(), 2u) << "at most one for each pod, not one for each try";
  EXPECT_THAT(failed()[0].value("note", ""), HasSubstr("exceeded quota: team"));
}

TEST_F(JobControllerFaultsTest, ARecordThatIsRefusedIsSaidAndNotAskedForInALoop) {
  FakeCluster cluster(
      api_, &hub_, [&](const std::string& pod) { (void)store_->Bind("default", pod, "node-1"); });
  api_->Refuse(kube::ConfigMaps(), kube::Error{.code = kube::ErrorCode::kForbidden,
                                               .http_status = 403,
                                               .message = "exceeded quota: configmaps"});
  Apply();
  ASSERT_TRUE(Until([&] { return Created().reason == "RecordForbidden"; }));
  EXPECT_THAT(Created().message, HasSubstr("exceeded quota: configmaps"));
  EXPECT_EQ(Events("FailedRecord").size(), 1u);
  (void)Until([] { return false; }, milliseconds(500));
  EXPECT_LE(api_->record_creates(), 8) << "50, 100, 200, 400, 800 ms";
  api_->Refuse(kube::ConfigMaps(), std::nullopt);
  EXPECT_TRUE(Until([&] { return Created().status && !cluster.Members().empty(); }));
}

TEST_F(JobControllerFaultsTest, ARecordThatIsNoneIsSaid) {
  ASSERT_TRUE(api_->Create(kube::ConfigMaps(), "default",
                           {{"metadata", {{"name", "digits-record"}}}, {"data", {{"a", "b"}}}}));
  Apply();
  ASSERT_TRUE(Until([&] { return Created().reason == "RecordUnusable"; }));
  EXPECT_THAT(Created().message, HasSubstr("configmap default/digits-record"));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), "default", "digits-record", {}));
  EXPECT_TRUE(Until([&] { return Created().status && api_->pod_creates() == 2; }));
}

TEST_F(JobControllerFaultsTest, AJobThatGoesWithItsNamespaceLeavesNoCallsBehind) {
  ASSERT_TRUE(api_->Create(kube::Namespaces(), "", {{"metadata", {{"name", "team"}}}}));
  Apply("team");
  ASSERT_TRUE(Until([&] { return api_->pod_creates() >= 2; }));
  ASSERT_TRUE(api_->Delete(kube::Namespaces(), "", "team", {}));
  ASSERT_TRUE(Until([&] { return controller_->Jobs().empty(); }));
  // What waits in the queue finds no job, and that's the end of it.
  ASSERT_TRUE(Until([&] { return controller_->state().queue.depth == 0; }));
  const int before = api_->writes();
  (void)Until([] { return false; }, milliseconds(300));
  EXPECT_EQ(api_->writes(), before);
  EXPECT_LE(api_->pod_creates(), 2 * 4) << "made again and again while the namespace went";
}

}  // namespace
}  // namespace ringmaster::controllers
