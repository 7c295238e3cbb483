// The operator's writes of a Workload during a job's life in a queue, checked by Kueue's own schema
// if the API server is a real one. The test alone answers for Kueue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/testing/job_object.h"
#include "operator/controllers/job_queue.h"
#include "operator/controllers/pod_builder.h"
#include "operator/kueue/workload.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using kueue::Stage;

constexpr char kName[] = "horovodjob-digits";

class JobQueueServersTest : public local::testing::OnEveryServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    Json object = api::testing::JobObject("digits", 4, 2);
    object["spec"]["runPolicy"]["schedulingPolicy"] = {{"queue", "gpus"}};
    // Fields that Kueue counts.
    Json& pod = object["spec"]["worker"]["template"]["spec"];
    pod["containers"][0]["resources"] = {{"limits", {{"cpu", "500m"}, {"nvidia.com/gpu", 1}}}};
    pod["nodeSelector"] = {{"arch", "a100"}};
    pod["tolerations"] = {{{"key", "gpu"}, {"operator", "Exists"}}};
    const auto made = api_->Create(kube::HorovodJobs(), ns_, object);
    ASSERT_TRUE(made) << made.error().message;
    snapshot_.job = *api::ParseHorovodJob(*made);
    snapshot_.now = std::chrono::system_clock::now();
    queue_ = std::make_unique<JobQueue>(
        api_, JobQueue::Options{.enabled = true, .namespaces = {ns_}, .pod = {.cluster = true}},
        [](const std::string&) {});
    queue_->Start();
    flavor_ = cluster_->NodeName("spot");  // it has no namespace, and a name of this test alone
    const auto flavor = api_->Create(
        kube::ResourceFlavors(), "",
        {{"metadata", {{"name", flavor_}}}, {"spec", {{"nodeLabels", {{"pool", "spot"}}}}}});
    ASSERT_TRUE(flavor) << flavor.error().message;
  }
  void TearDown() override {
    if (queue_ != nullptr) queue_->Stop();
    (void)api_->Delete(kube::ResourceFlavors(), "", flavor_, {});
  }

  Json Workload() {
    const auto found = api_->Get(kube::Workloads(), ns_, kName);
    return found ? *found : Json();
  }
  kueue::QueueState Look() {
    const auto answer = queue_->Look(snapshot_);
    return answer.state.value_or(kueue::QueueState());
  }
  // Calls Look until the job has this state, and until everything that follows is written.
  void ComesTo(Stage stage, const std::string& words) {
    kueue::QueueState last;
    EXPECT_TRUE(support::Until([&] {
      last = Look();
      return last.stage == stage && last.message.find(words) != std::string::npos;
    })) << last.message;
  }
  template <typename Seen>
  void Until(const char* what, Seen seen) {
    std::string last;
    EXPECT_TRUE(support::Until([&] {
      last = Look().message;
      return seen(Workload());
    })) << what
        << "\n"
        << last << "\n"
        << Workload().dump(1);
  }
  static Json Condition(const char* type, const char* reason) {
    return {{"type", type},
            {"status", "True"},
            {"reason", reason},
            {"message", "by the test"},
            {"lastTransitionTime", api::FormatTime(std::chrono::system_clock::now())}};
  }
  void PatchStatus(const Json& status) {
    const auto patched =
        api_->Patch(kube::Workloads(), ns_, kName, {{"status", status}}, {.subresource = "status"});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  void Admit(int pods) {
    PatchStatus({{"conditions",
                  {Condition("QuotaReserved", "QuotaReserved"), Condition("Admitted", "Admitted")}},
                 {"admission",
                  {{"clusterQueue", "cluster"},
                   {"podSetAssignments",
                    {{{"name", kueue::kPodSet},
                      {"count", pods},
                      {"flavors", {{"cpu", flavor_}, {"nvidia.com/gpu", flavor_}}},
                      {"resourceUsage", {{"cpu", "1"}, {"nvidia.com/gpu", "2"}}}}}}}}});
  }
  void Run(int pods) {
    snapshot_.pods.clear();
    for (int i = 0; i < pods; ++i) {
      snapshot_.pods.push_back({.name = "digits-worker-" + std::to_string(i),
                                .uid = "pod-" + std::to_string(i),
                                .index = i,
                                .phase = planner::PodPhase::kRunning,
                                .scheduled = true,
                                .running_since = snapshot_.now});
    }
  }
  static bool Has(const Json& workload, const char* type) {
    const Json* condition = kueue::FindCondition(workload, type);
    return condition != nullptr && (*condition)["status"] == "True";
  }

  planner::Snapshot snapshot_;
  std::string flavor_;
  std::unique_ptr<JobQueue> queue_;
};

TEST_P(JobQueueServersTest, EachWriteOfAJobsLifeIsTaken) {
  ComesTo(Stage::kWaits, "not looked at");
  const Json made = Workload();
  ASSERT_FALSE(made.is_null());
  EXPECT_EQ(made["spec"]["queueName"], "gpus");
  EXPECT_EQ(made["spec"]["podSets"][0]["count"], 4);
  EXPECT_EQ(made["spec"]["podSets"][0]["minCount"], 2);

  Admit(3);
  ComesTo(Stage::kAdmitted, "3 of 4 pods");
  Run(3);
  Until("pods are ready", [](const Json& workload) { return Has(workload, kueue::kPodsReady); });

  // The job is evicted: the quota is released when the pods have gone.
  PatchStatus({{"conditions", [&] {
                  Json all = Workload()["status"]["conditions"];
                  all.push_back(Condition("Evicted", "Preempted"));
                  return all;
                }()}});
  ComesTo(Stage::kLeaves, "");
  snapshot_.pods.clear();
  Until("the quota is given back",
        [](const Json& workload) { return !Has(workload, kueue::kQuotaReserved); });

  // The job ends well.
  snapshot_.job.status.conditions = {{"Succeeded", true, "AllRanksDone", "all are done", "", 0}};
  Until("it is finished", [](const Json& workload) { return Has(workload, kueue::kFinished); });
}

// Checks for fields that the schema doesn't have, which a server drops silently.
TEST_P(JobQueueServersTest, AWorkloadHasNoFieldThatKueueDoesNotKnow) {
  ComesTo(Stage::kWaits, "not looked at");
  const Json& job_template = snapshot_.job.spec.worker.pod_template;
  Json workload = kueue::BuildWorkload(snapshot_.job, {{"spec", job_template["spec"]}},
                                       kueue::Priority{"urgent", true, 7});
  workload["metadata"]["name"] = "another";
  const auto made =
      api_->CreateWith(kube::Workloads(), ns_, workload, {.field_validation = "Strict"});
  ASSERT_TRUE(made) << made.error().message;
  for (const auto& [field, value] : workload["spec"].items()) {
    EXPECT_TRUE((*made)["spec"].contains(field)) << field;
  }
}

RM_ON_EVERY_SERVER(JobQueueServersTest);

}  // namespace
}  // namespace ringmaster::controllers
