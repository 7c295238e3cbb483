// A job in a Kueue queue, on a local cluster with real sidecars and workers: a stand-in for Kueue's
// controllers admits it, evicts it, and admits it again.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>

#include "operator/api/testing/job_object.h"
#include "operator/app/testing/cluster_e2e.h"
#include "operator/app/testing/kueue_stand_in.h"
#include "operator/kueue/workload.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kPool[] = "example.com/pool";
constexpr char kWorkload[] = "horovodjob-train";

class KueueE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(out_);
    StartCluster({.bin_dir = RM_BIN_DIR});
    const auto nodes = api_->ListAll(kube::Nodes(), "", {});
    ASSERT_TRUE(nodes && nodes->items.size() == 1);
    const std::string node = nodes->items.front()["metadata"]["name"];
    ASSERT_TRUE(
        api_->Patch(kube::Nodes(), "", node, {{"metadata", {{"labels", {{kPool, "spot"}}}}}}, {}));
    SetGpus(4);
    ASSERT_TRUE(api_->Create(kube::ResourceFlavors(), "",
                             {{"metadata", {{"name", "spot"}}},
                              {"spec",
                               {{"nodeLabels", {{kPool, "spot"}}},
                                {"tolerations", {{{"key", kPool}, {"operator", "Exists"}}}}}}}));
    kueue_ = std::make_unique<KueueStandIn>(
        api_.get(), KueueStandIn::Options{.queue = "gpus", .flavor = "spot", .resource = kGpu});
    operator_ = std::make_unique<RunningOperator>(RunningOperator::Options{
        .name = "op", .dir = dir_, .flags = OperatorFlags({"--gang-admission", "--kueue"})});
  }
  void TearDown() override {
    if (HasFailure()) {
      std::cerr << StatusOf("train").dump(1) << "\n" << kueue_->Workload(kWorkload).dump(1) << "\n";
      if (operator_ != nullptr) std::cerr << operator_->Log();
    }
    operator_.reset();
    ClusterE2e::TearDown();
  }

  // Two pods of the job have to train together; each has a GPU.
  void ApplyJob(int replicas) {
    Json job = api::testing::JobObject("train", replicas, 2,
                                       {WORKER_BINARY, out_.string(), "--sleep-ms", "20"});
    job["spec"]["elasticPolicy"]["resizeIntervalSeconds"] = 0;
    job["spec"]["runPolicy"]["schedulingPolicy"]["queue"] = "gpus";
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {
        {"limits", {{kGpu, "1"}}}};
    Apply(job);
  }
  void ChangeJob(const Json& spec) {
    const auto patched = api_->Patch(kube::HorovodJobs(), "default", "train", {{"spec", spec}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }

  // Kueue's stand-in keeps deciding meanwhile.
  template <class F>
  bool Until(F&& so) {
    return support::Until([&] {
      kueue_->Step();
      return so();
    });
  }
  api::Status Status() { return api::StatusFromJson(StatusOf("train")); }
  std::string State() { return Status().state; }
  bool Trains(int pods) {
    return Until([&] {
      const api::Status status = Status();
      return status.state == "Running" && status.world_size == pods;
    });
  }
  // The last step of each worker that has ever run.
  std::set<int> LastSteps() const {
    std::set<int> steps;
    for (const auto& entry : std::filesystem::directory_iterator(out_)) {
      std::ifstream file(entry.path());
      int last = 0;
      for (std::string line; std::getline(file, line);) last = std::atoi(line.c_str());
      if (last > 0) steps.insert(last);
    }
    return steps;
  }
  // "True Preempted"; empty if the Workload has no such condition.
  std::string ConditionOf(const std::string& type) {
    const Json workload = kueue_->Workload(kWorkload);
    const Json status = workload.is_object() ? workload.value("status", Json::object()) : Json();
    if (!status.is_object()) return "";
    for (const Json& condition : status.value("conditions", Json::array())) {
      if (condition["type"] != type) continue;
      return condition["status"].get<std::string>() + " " + condition["reason"].get<std::string>();
    }
    return "";
  }
  std::vector<Json> Pods() {
    const auto pods = api_->ListAll(kube::Pods(), "default", {});
    return pods ? pods->items : std::vector<Json>();
  }
  bool WaitsSaying(const std::string& reason, const std::string& words) {
    return Until([&] {
      const api::Status status = Status();
      const api::Condition* scheduled = status.Find("Scheduled");
      return status.state == "Queued" && scheduled != nullptr && !scheduled->status &&
             scheduled->reason == reason && scheduled->message.find(words) != std::string::npos;
    });
  }

  const std::filesystem::path out_ = dir_ / "out";
  std::unique_ptr<KueueStandIn> kueue_;
  std::unique_ptr<RunningOperator> operator_;
};

TEST_F(KueueE2e, AJobWaitsForItsQueueAndTrainsWithWhatIsAdmittedAndLeavesWhenItIsEvicted) {
  kueue_->SetQuota(1);
  ApplyJob(4);
  ASSERT_TRUE(WaitsSaying("WaitingForQueue", "insufficient unused quota"));
  EXPECT_THAT(Status().Find("Scheduled")->message, HasSubstr("queue gpus: "));
  EXPECT_TRUE(Pods().empty());

  kueue_->SetQuota(3);
  ASSERT_TRUE(Trains(3));
  EXPECT_TRUE(StepsGoOn(out_));
  EXPECT_THAT(Status().Find("Scheduled")->message, HasSubstr("3 of 4 pods are admitted"));
  const std::vector<Json> pods = Pods();
  ASSERT_EQ(pods.size(), 3u);
  for (const Json& pod : pods) {
    EXPECT_EQ(pod["spec"]["nodeSelector"], Json({{kPool, "spot"}}));
    EXPECT_THAT(pod["spec"]["tolerations"].dump(), HasSubstr(kPool));
  }
  const auto job = api_->Get(kube::HorovodJobs(), "default", "train");
  ASSERT_TRUE(job);
  EXPECT_FALSE((*job)["spec"]["worker"]["template"]["spec"].contains("nodeSelector"));
  EXPECT_TRUE(Until([&] { return ConditionOf("PodsReady") == "True Started"; }));

  kueue_->SetQuota(0);
  kueue_->Evict(kWorkload, "Preempted", "Preempted to accommodate a higher priority Workload");
  ASSERT_TRUE(WaitsSaying("WaitingForQueue", "insufficient unused quota"));
  EXPECT_TRUE(Until([&] { return Pods().empty(); }));
  EXPECT_THAT(LastSteps(), SizeIs(1)) << "they left at the same step";
  EXPECT_EQ(ConditionOf("QuotaReserved"), "False Pending");
  EXPECT_EQ(ConditionOf("Admitted"), "False NoReservation");
  EXPECT_EQ(ConditionOf("Requeued"), "True Preempted");

  kueue_->SetQuota(4);
  ASSERT_TRUE(Trains(4));
  EXPECT_TRUE(StepsGoOn(out_));
  EXPECT_TRUE(Until([&] { return ConditionOf("PodsReady") == "True Started"; }));

  std::ofstream(out_ / "stop").flush();
  ASSERT_TRUE(Until([&] { return State() == "Succeeded"; }));
  EXPECT_TRUE(Until([&] { return ConditionOf("Finished") == "True Succeeded"; }));
  EXPECT_THAT(kueue_->violations(), testing::IsEmpty());
}

TEST_F(KueueE2e, ASmallerJobGivesQuotaBackAndASuspendedOneAllOfIt) {
  kueue_->SetQuota(4);
  ApplyJob(4);
  ASSERT_TRUE(Trains(4));
  ChangeJob({{"worker", {{"replicas", 3}}}});
  ASSERT_TRUE(Trains(3));
  const auto reclaimed = [&] {
    const Json workload = kueue_->Workload(kWorkload);
    return workload.is_object() ? workload["status"].value("reclaimablePods", Json()) : Json();
  };
  const Json one = {{{"name", "worker"}, {"count", 1}}};
  EXPECT_TRUE(Until([&] { return reclaimed() == one; }));

  // The queue may be stopped for the job, and started again.
  ASSERT_TRUE(
      api_->Patch(kube::Workloads(), "default", kWorkload, {{"spec", {{"active", false}}}}, {}));
  ASSERT_TRUE(WaitsSaying("WaitingForQueue", "spec.active is false"));
  EXPECT_TRUE(Until([&] { return ConditionOf("QuotaReserved") == "False Pending"; }));
  ASSERT_TRUE(
      api_->Patch(kube::Workloads(), "default", kWorkload, {{"spec", {{"active", true}}}}, {}));
  ASSERT_TRUE(Trains(3));

  // The same patch changes the template, as another queue may require it.
  const auto job = api_->Get(kube::HorovodJobs(), "default", "train");
  ASSERT_TRUE(job);
  Json pod_template = (*job)["spec"]["worker"]["template"];
  pod_template["spec"]["nodeSelector"] = {{kPool, "spot"}};
  ChangeJob({{"runPolicy", {{"suspend", true}}}, {"worker", {{"template", pod_template}}}});
  ASSERT_TRUE(Until([&] { return State() == "Suspended" && Pods().empty(); }));
  EXPECT_TRUE(Until([&] { return kueue_->Workload(kWorkload).is_null(); }));
  ChangeJob({{"runPolicy", {{"suspend", false}}}, {"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(Trains(4));
  std::ofstream(out_ / "stop").flush();
  ASSERT_TRUE(Until([&] { return State() == "Finishing" || State() == "Succeeded"; }));
  kueue_->Evict(kWorkload, "Preempted", "too late: all ranks have agreed to end");
  ASSERT_TRUE(Until([&] { return State() != "Finishing"; }));
  EXPECT_EQ(State(), "Succeeded");
  EXPECT_TRUE(Until([&] { return ConditionOf("Finished") == "True Succeeded"; }));
  EXPECT_THAT(kueue_->violations(), testing::IsEmpty());
}

TEST_F(KueueE2e, WhatAPartlyAdmittedJobGivesBackAnotherGets) {
  kueue_->SetQuota(3);
  ApplyJob(4);
  ASSERT_TRUE(Trains(3));
  const auto other = api_->Create(
      kube::Workloads(), "default",
      {{"metadata", {{"name", "other"}}},
       {"spec", {{"queueName", "gpus"}, {"podSets", {{{"name", kueue::kPodSet}, {"count", 1}}}}}}});
  ASSERT_TRUE(other) << other.error().message;
  ChangeJob({{"worker", {{"replicas", 2}}}});
  EXPECT_TRUE(Until([&] { return kueue::ReadWorkload(kueue_->Workload("other")).admitted; }));
  EXPECT_TRUE(Trains(2));
  EXPECT_THAT(kueue_->violations(), testing::IsEmpty());
}

TEST_F(KueueE2e, AJobThatIsResumedBeforeItsPodsHaveGoneAsksAnew) {
  kueue_->SetQuota(4);
  ApplyJob(2);
  ASSERT_TRUE(Trains(2));
  const Json before = kueue_->Workload(kWorkload)["metadata"]["uid"];
  ChangeJob({{"runPolicy", {{"suspend", true}}}});
  ASSERT_TRUE(Until([&] { return State() == "Suspended"; }));
  ChangeJob({{"runPolicy", {{"suspend", false}}}, {"worker", {{"replicas", 4}}}});
  ASSERT_TRUE(Trains(4));
  EXPECT_NE(kueue_->Workload(kWorkload)["metadata"]["uid"], before);
  EXPECT_THAT(kueue_->violations(), testing::IsEmpty());
}

}  // namespace
}  // namespace ringmaster::app
