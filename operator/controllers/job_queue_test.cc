#include "operator/controllers/job_queue.h"

#include "operator/controllers/testing/parts_fixture.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using kueue::Stage;
using support::Until;
using ::testing::HasSubstr;

constexpr char kName[] = "horovodjob-digits";

// The job "digits" in queue "gpus". The test itself answers for Kueue.
class JobQueueTest : public testing::PartsTest {
 protected:
  JobQueueTest() {
    job_.queue = "gpus";
    snapshot_.now = std::chrono::system_clock::now();
  }
  void Begin(bool enabled = true) {
    queue_of_job_ = std::make_unique<JobQueue>(
        api_, JobQueue::Options{.enabled = enabled, .namespaces = {}, .pod = {}},
        [](const std::string&) {});
    queue_of_job_->Start();
  }
  void TearDown() override {
    if (queue_of_job_ != nullptr) queue_of_job_->Stop();
  }
  kueue::QueueState Look() {
    snapshot_.job = job_;
    const JobQueue::Answer answer = queue_of_job_->Look(snapshot_);
    look_again_ = answer.look_again.has_value();
    EXPECT_TRUE(answer.state);
    return answer.state.value_or(kueue::QueueState());
  }
  bool ComesTo(Stage stage, const std::string& words) {
    kueue::QueueState last;
    const bool came = Until(
        [&] {
          last = Look();
          return last.stage == stage && last.message.find(words) != std::string::npos;
        },
        std::chrono::seconds(20));
    EXPECT_TRUE(came) << last.message;
    return came;
  }
  Json Workload() {
    const auto found = api_->Get(kube::Workloads(), "default", kName);
    return found ? *found : Json();
  }
  void Admit(int pods) {
    const auto condition = [](const char* type) {
      return Json{{"type", type}, {"status", "True"}, {"reason", "Any"}, {"message", ""}};
    };
    const auto patched = api_->Patch(
        kube::Workloads(), "default", kName,
        {{"status",
          {{"conditions", {condition(kueue::kQuotaReserved), condition(kueue::kAdmitted)}},
           {"admission",
            {{"clusterQueue", "cluster"},
             {"podSetAssignments",
              {{{"name", kueue::kPodSet}, {"count", pods}, {"flavors", {{"cpu", "spot"}}}}}}}}}}},
        {.subresource = "status"});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  void MakeFlavor(const Json& node_labels) {
    ASSERT_TRUE(
        api_->Create(kube::ResourceFlavors(), "",
                     {{"metadata", {{"name", "spot"}}}, {"spec", {{"nodeLabels", node_labels}}}}));
  }

  // Kueue has let all of the job start.
  void BeginAdmitted() {
    Begin();
    ASSERT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
    MakeFlavor({{"pool", "spot"}});
    Admit(2);
    ASSERT_TRUE(ComesTo(Stage::kAdmitted, "2 of 2 pods"));
  }

  std::unique_ptr<JobQueue> queue_of_job_;
  planner::Snapshot snapshot_;
  bool look_again_ = false;
};

TEST_F(JobQueueTest, AnOperatorThatServesNoQueuesSaysSo) {
  Begin(false);
  const kueue::QueueState state = Look();
  EXPECT_EQ(state.stage, Stage::kUnknown);
  EXPECT_THAT(state.message, HasSubstr("without --kueue"));
  job_.queue.clear();
  snapshot_.job = job_;
  EXPECT_FALSE(queue_of_job_->Look(snapshot_).state);
}

TEST_F(JobQueueTest, WithoutKueueTheJobWaitsAndIsToldWhy) {
  api_->refusal = {.code = kube::ErrorCode::kNotFound, .message = "no such resource"};
  api_->refused_verb = "list";
  Begin();
  EXPECT_TRUE(ComesTo(Stage::kUnknown, "is Kueue installed? no such resource"));
  EXPECT_TRUE(look_again_);
  api_->refused_verb = "";
  EXPECT_TRUE(ComesTo(Stage::kWaits, "not looked at")) << "it was installed meanwhile";
}

TEST_F(JobQueueTest, AnAdmissionBringsWhatTheFlavorWants) {
  ASSERT_NO_FATAL_FAILURE(BeginAdmitted());
  const kueue::QueueState state = Look();
  EXPECT_EQ(state.pods, 2);
  ASSERT_NE(state.changes, nullptr);
  EXPECT_EQ(state.changes->node_selector.at("pool"), "spot");
}

// No other job could use this quota, and neither can this job.
TEST_F(JobQueueTest, QuotaBetweenTwoAllowedSizesIsGivenBack) {
  job_.spec.worker.replicas = 4;
  job_.spec.elastic_policy.min_replicas = 2;
  job_.spec.elastic_policy.allowed_sizes = {2, 4};
  Begin();
  ASSERT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
  MakeFlavor({{"pool", "spot"}});
  Admit(3);
  ASSERT_TRUE(ComesTo(Stage::kAdmitted, "2 of 4 pods"));
  EXPECT_EQ(Workload()["status"]["reclaimablePods"], Json({{{"name", "worker"}, {"count", 2}}}));
}

TEST_F(JobQueueTest, AFlavorThatIsNotThereIsNamedAndTakesNoPodAway) {
  Begin();
  ASSERT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
  Admit(2);
  ASSERT_TRUE(ComesTo(Stage::kUnknown, "spot"));
  EXPECT_EQ(Look().reason, kueue::kAdmissionUnusable);
  EXPECT_TRUE(look_again_);
}

TEST_F(JobQueueTest, AWorkloadOfAnotherJobIsLeftAlone) {
  const Json labels = {{api::kManagedByLabel, api::kManagedBy}};
  ASSERT_TRUE(api_->Create(kube::Workloads(), "default",
                           {{"metadata", {{"name", kName}, {"labels", labels}}}}));
  const Json before = Workload();
  Begin();
  EXPECT_TRUE(ComesTo(Stage::kWaits, "is another job's"));
  EXPECT_EQ(Workload(), before);
}

TEST_F(JobQueueTest, AJobThatIsMadeAgainWaitsForTheEndOfTheOneBefore) {
  const Json labels = {{api::kManagedByLabel, api::kManagedBy}};
  ASSERT_TRUE(api_->Create(
      kube::Workloads(), "default",
      {{"metadata",
        {{"name", kName},
         {"labels", labels},
         {"finalizers", {"kueue.x-k8s.io/resource-in-use"}},
         {"ownerReferences", Json::array({OwnerReference("digits", "of-before")})}}}}));
  Begin();
  ASSERT_TRUE(ComesTo(Stage::kWaits, "of an earlier job of this name"));
  EXPECT_EQ(Look().reason, kueue::kWaitingForQueue);
  (void)api_->Delete(kube::Workloads(), "default", kName, {});
  EXPECT_EQ(Look().reason, kueue::kWaitingForQueue) << "it is on its way out";
  ASSERT_TRUE(api_->Patch(kube::Workloads(), "default", kName,
                          {{"metadata", {{"finalizers", nullptr}}}}, {}));
  EXPECT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
}

TEST_F(JobQueueTest, TheFirstListIsAnAnswerAlsoWhereItIsRefused) {
  api_->refused_verb = "list";
  Begin();
  EXPECT_TRUE(Until([&] { return queue_of_job_->HasAnswer(); }));
  Begin(false);
  EXPECT_TRUE(queue_of_job_->HasAnswer());
}

TEST_F(JobQueueTest, ThePriorityIsThatOfTheClass) {
  job_.spec.run_policy.scheduling_policy.priority_class = "urgent";
  Begin();
  ASSERT_TRUE(ComesTo(Stage::kLeaves, "urgent")) << "there is no such class";
  EXPECT_TRUE(Workload().is_null());
  EXPECT_TRUE(look_again_);
  ASSERT_TRUE(api_->Create(kube::PriorityClasses(), "",
                           {{"metadata", {{"name", "urgent"}}}, {"value", 7}}));
  ASSERT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
  EXPECT_EQ(Workload()["spec"]["priority"], 7);
}

TEST_F(JobQueueTest, WithoutAClassThePriorityIsThatOfTheDefaultClass) {
  ASSERT_TRUE(
      api_->Create(kube::PriorityClasses(), "",
                   {{"metadata", {{"name", "usual"}}}, {"value", 7}, {"globalDefault", true}}));
  Begin();
  ASSERT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
  EXPECT_EQ(Workload()["spec"]["priority"], 7);
}

TEST_F(JobQueueTest, AJobThatNamesNoQueueAnyMoreLosesItsWorkload) {
  Begin();
  ASSERT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
  job_.queue.clear();
  snapshot_.job = job_;
  EXPECT_FALSE(queue_of_job_->Look(snapshot_).state);
  EXPECT_TRUE(Workload().is_null());
}

TEST_F(JobQueueTest, AJobIsNotLetStartAgainByWhatItHadBeforeASuspension) {
  ASSERT_NO_FATAL_FAILURE(BeginAdmitted());
  planner::PodFacts pod;
  pod.deleting = pod.scheduled = true;
  snapshot_.pods = {pod};
  job_.status.conditions = {{"Suspended", true, "Suspended", "", "2026-01-31T11:00:00Z", 0}};
  const kueue::QueueState state = Look();
  EXPECT_EQ(state.stage, Stage::kWaits);
  EXPECT_EQ(state.reason, kueue::kAdmissionGivenBack);
  EXPECT_FALSE(Workload().is_null()) << "a pod is left";
  // The status after that reconcile; then the last pod goes.
  job_.status.conditions.front().reason = state.reason;
  snapshot_.pods.clear();
  EXPECT_EQ(Look().stage, Stage::kLeaves);
  EXPECT_TRUE(Workload().is_null());
  job_.status.conditions.front().reason = kueue::kWaitingForQueue;
  EXPECT_NE(Look().stage, Stage::kAdmitted) << "whatever the cache has heard by then";
  EXPECT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
}

TEST_F(JobQueueTest, APodThatNeverHadANodeHoldsNoQuota) {
  ASSERT_NO_FATAL_FAILURE(BeginAdmitted());
  planner::PodFacts pod;
  pod.deleting = true;  // and a finalizer of somebody keeps it
  snapshot_.pods = {pod};
  job_.status.conditions = {{"Suspended", true, "Suspended", "", "2026-01-31T11:00:00Z", 0}};
  Look();
  EXPECT_TRUE(Workload().is_null());
}

TEST_F(JobQueueTest, AWorkloadThatLostItsLabelsGetsThemBack) {
  ASSERT_NO_FATAL_FAILURE(BeginAdmitted());
  const auto rename = [&] {
    ASSERT_TRUE(api_->Patch(kube::Workloads(), "default", kName,
                            {{"metadata", {{"labels", {{api::kManagedByLabel, "another"}}}}}}, {}));
  };
  const auto is_named = [&] {
    return Workload()["metadata"]["labels"][api::kManagedByLabel] == api::kManagedBy;
  };
  snapshot_.pods = {planner::PodFacts()};
  rename();
  std::set<Stage> seen;  // the pods stay while it is found out
  ASSERT_TRUE(Until([&] {
    seen.insert(Look().stage);
    return is_named();
  }));
  EXPECT_TRUE(ComesTo(Stage::kAdmitted, "2 of 2 pods"));
  EXPECT_FALSE(seen.contains(Stage::kLeaves));
  snapshot_.pods.clear();
  rename();
  EXPECT_TRUE(Until([&] {
    Look();
    return is_named();
  })) << "it can't be made once more";
}

TEST_F(JobQueueTest, AJobThatNamesNoQueueAnyMoreLosesWhatWasAdmitted) {
  ASSERT_NO_FATAL_FAILURE(BeginAdmitted());
  snapshot_.pods = {planner::PodFacts()};
  job_.queue.clear();
  const kueue::QueueState state = Look();
  EXPECT_EQ(state.stage, Stage::kLeaves);
  EXPECT_THAT(state.message, HasSubstr("queue gpus: the job names no queue any more"));
  snapshot_.pods.clear();
  EXPECT_FALSE(queue_of_job_->Look(snapshot_).state);
  EXPECT_TRUE(Workload().is_null());
}

TEST_F(JobQueueTest, WhatIsRefusedIsSaidAndTriedAgain) {
  Begin();
  ASSERT_TRUE(Until([&] {
    snapshot_.job = job_;
    api_->refused_verb = "create";
    return Look().stage != Stage::kUnknown;
  }));
  EXPECT_THAT(Look().message, HasSubstr("the test says no"));
  EXPECT_TRUE(look_again_);
  api_->refused_verb = "";
  EXPECT_TRUE(ComesTo(Stage::kWaits, "not looked at"));
}

}  // namespace
}  // namespace ringmaster::controllers
