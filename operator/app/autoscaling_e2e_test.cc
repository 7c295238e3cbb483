// Jobs with an operator that lets pods stand Pending for an autoscaler, on a local cluster with
// real sidecars and workers. A stand-in for the autoscaler adds GPUs for pods that the scheduler
// has refused, and sees no others. No real autoscaler was run.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <set>

#include "operator/api/labels.h"
#include "operator/api/testing/job_object.h"
#include "operator/app/testing/cluster_e2e.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kSafeToEvict[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";
constexpr char kDoNotDisrupt[] = "karpenter.sh/do-not-disrupt";

class AutoscalingE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    for (const char* sub : {"a", "b"}) fs::create_directory(dir_ / sub);
    StartCluster({.bin_dir = RM_BIN_DIR});
    SetGpus(0);
  }
  void TearDown() override {
    if (HasFailure()) {
      for (const char* job : {"a", "b"}) std::cerr << job << ": " << StatusOf(job).dump(1) << "\n";
      if (operator_ != nullptr) std::cerr << operator_->Log();
    }
    operator_.reset();
    ClusterE2e::TearDown();
  }
  void StartOperator(const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--gang-admission", "--autoscaling-after-seconds=1"};
    flags.insert(flags.end(), more.begin(), more.end());
    operator_ = std::make_unique<RunningOperator>(
        RunningOperator::Options{.name = "op", .dir = dir_, .flags = OperatorFlags(flags)});
  }

  void MakeGpus(int count) {
    SetGpus(count);
    gpus_ = count;
  }
  std::vector<Json> Pods(const std::string& job) {
    std::vector<Json> pods;
    const auto all = api_->ListAll(kube::Pods(), "default", {});
    if (!all) return pods;
    for (const Json& pod : all->items) {
      if (pod["metadata"]["name"].get<std::string>().rfind(job + "-worker-", 0) == 0)
        pods.push_back(pod);
    }
    return pods;
  }
  // One round of the autoscaler: adds a GPU for each pod that the scheduler has refused, up to
  // `most`.
  void Autoscale(int most) {
    int wanted = 0;
    for (const char* job : {"a", "b"}) {
      for (const Json& pod : Pods(job)) {
        if (pod["metadata"].contains("deletionTimestamp")) continue;
        if (!pod["spec"]["containers"][0].contains("resources")) continue;
        const bool needs = pod["spec"]["containers"][0]["resources"].contains("limits");
        const bool placed = !pod["spec"].value("nodeName", "").empty();
        if (needs && (placed || IsRefused(pod))) ++wanted;
      }
    }
    if (const int count = std::min(wanted, most); count > gpus_) MakeGpus(count);
  }
  static bool IsRefused(const Json& pod) {
    const Json conditions = pod["status"].value("conditions", Json::array());
    return std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
      return condition["type"] == "PodScheduled" &&
             condition.value("reason", "") == "Unschedulable";
    });
  }

  // All `least` pods have to train together, each with a GPU if `gpu` is set.
  void ApplyJob(const std::string& name, int replicas, int least, bool gpu = true) {
    Json job = api::testing::JobObject(name, replicas, least,
                                       {WORKER_BINARY, (dir_ / name).string(), "--sleep-ms", "20"});
    Json& pod = job["spec"]["worker"]["template"];
    if (gpu) pod["spec"]["containers"][0]["resources"] = {{"limits", {{kGpu, "1"}}}};
    pod["metadata"]["annotations"][kDoNotDisrupt] = "mine";
    Apply(job);
  }
  api::Status Status(const std::string& name) { return api::StatusFromJson(StatusOf(name)); }
  bool Waits(const std::string& name, const std::string& reason) {
    const api::Status status = Status(name);
    const api::Condition* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == reason;
  }
  bool Trains(const std::string& name, int pods) {
    const api::Status status = Status(name);
    return status.state == "Running" && status.world_size == pods;
  }
  bool HasEvent(const std::string& job, const std::string& reason) {
    const auto events = api_->ListAll(kube::Events(), "default", {});
    return events && std::any_of(events->items.begin(), events->items.end(), [&](const Json& e) {
             return e.value("reason", "") == reason &&
                    e.value("/regarding/name"_json_pointer, "") == job;
           });
  }
  void EndAll(const std::vector<std::string>& jobs) {
    for (const std::string& job : jobs) std::ofstream(dir_ / job / "stop").flush();
    for (const std::string& job : jobs) {
      EXPECT_TRUE(Until([&] { return Status(job).state == "Succeeded"; })) << job;
    }
  }

  int gpus_ = 0;
  std::unique_ptr<RunningOperator> operator_;
};

TEST_F(AutoscalingE2e, AJobStartsWithNodesThatAreMadeForTheLeastThatItNeeds) {
  StartOperator({"--autoscaling=Pending"});
  ApplyJob("a", 3, 2);
  ASSERT_TRUE(Until([&] { return Waits("a", "WaitingForNodes"); }));
  EXPECT_THAT(Status("a").Find("Scheduled")->message, HasSubstr("2 pods stand Pending"));
  ASSERT_TRUE(Until([&] { return HasEvent("a", "WaitingForNodes"); }));
  std::set<std::string> called;
  for (const Json& pod : Pods("a")) {
    const Json& annotations = pod["metadata"]["annotations"];
    EXPECT_EQ(annotations.value(kSafeToEvict, ""), "false") << "until it trains";
    EXPECT_EQ(annotations.value(kDoNotDisrupt, ""), "mine") << "what the user has written";
    EXPECT_TRUE(annotations.contains(api::kCallsForNodesAnnotation));
    called.insert(pod["metadata"]["name"]);
  }
  EXPECT_EQ(called, (std::set<std::string>{"a-worker-0", "a-worker-1"}));

  ASSERT_TRUE(Until([&] {
    Autoscale(100);
    return Trains("a", 2);
  }));
  EXPECT_EQ(gpus_, 2) << "nobody called for the third";
  EXPECT_TRUE(StepsGoOn(dir_ / "a"));
  EXPECT_TRUE(Until([&] {
    for (const Json& pod : Pods("a")) {
      if (pod["metadata"]["annotations"].contains(kSafeToEvict)) return false;
    }
    return true;
  })) << "a job that trains can be drained";
  for (const Json& pod : Pods("a")) {
    EXPECT_EQ(pod["metadata"]["annotations"].value(kDoNotDisrupt, ""), "mine");
  }
  EndAll({"a"});
}

TEST_F(AutoscalingE2e, WithoutTheFlagNobodyCalls) {
  StartOperator({});
  ApplyJob("a", 2, 2);
  ASSERT_TRUE(Until([&] { return Waits("a", "WaitingForRoom"); }));
  ApplyJob("b", 2, 2, false);
  ASSERT_TRUE(Until([&] { return Trains("b", 2); }));
  ASSERT_TRUE(StepsGoOn(dir_ / "b", 100)) << "two seconds";
  Autoscale(100);
  EXPECT_EQ(gpus_, 0);
  EXPECT_TRUE(Waits("a", "WaitingForRoom"));
  EXPECT_TRUE(Pods("a").empty());
  EndAll({"b"});
}

// Only two GPUs are available, and the first job in line needs three.
TEST_F(AutoscalingE2e, AJobThatGetsTooFewNodesGivesThemBackAndAnotherStartsThere) {
  StartOperator(
      {"--autoscaling=Pending", "--autoscaling-within-seconds=10", "--autoscaling-jobs=1"});
  ApplyJob("a", 3, 3);
  ASSERT_TRUE(Until([&] { return Waits("a", "WaitingForNodes"); }));
  ApplyJob("b", 2, 2);
  ASSERT_TRUE(Until([&] { return Waits("b", "WaitingForRoom"); }));
  ASSERT_TRUE(Until([&] {
    Autoscale(2);
    return Trains("b", 2);
  }));
  EXPECT_TRUE(HasEvent("a", "GivenBack"));
  EXPECT_EQ(gpus_, 2);
  EXPECT_TRUE(StepsGoOn(dir_ / "b"));
  EndAll({"b"});
}

}  // namespace
}  // namespace ringmaster::app
