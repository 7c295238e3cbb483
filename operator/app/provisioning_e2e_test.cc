// Jobs that ask for nodes by ProvisioningRequests, on a local cluster with real sidecars and
// workers. A stand-in for cluster-autoscaler answers them. The real one was not run.
#include <gmock/gmock.h>

#include <fstream>

#include "operator/api/testing/job_object.h"
#include "operator/app/testing/autoscaler_stand_in.h"
#include "operator/app/testing/cluster_e2e.h"
#include "operator/provisioning/request.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using testing::HasSubstr;
using testing::IsEmpty;

class ProvisioningE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(out_);
    StartCluster({.bin_dir = RM_BIN_DIR});
    SetGpus(0);
    autoscaler_ = std::make_unique<AutoscalerStandIn>(
        api_.get(), AutoscalerStandIn::Options{.class_name = provisioning::kBestEffortAtomic,
                                               .resource = kGpu,
                                               .most = 8,
                                               .add = [this](int count) {
                                                 gpus_ += count;
                                                 SetGpus(gpus_);
                                               }});
    operator_ = std::make_unique<RunningOperator>(RunningOperator::Options{
        .name = "op",
        .dir = dir_,
        .flags = OperatorFlags({"--gang-admission", "--autoscaling=ProvisioningRequest",
                                "--autoscaling-after-seconds=1"})});
  }
  void TearDown() override {
    if (HasFailure()) {
      std::cerr << StatusOf("train").dump(1) << "\n";
      for (const Json& request : autoscaler_->Requests()) std::cerr << request.dump(1) << "\n";
      if (operator_ != nullptr) std::cerr << operator_->Log();
    }
    operator_.reset();
    ClusterE2e::TearDown();
  }

  // Two of three pods have to train together, each with a GPU.
  void ApplyJob() {
    Json job =
        api::testing::JobObject("train", 3, 2, {WORKER_BINARY, out_.string(), "--sleep-ms", "20"});
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {
        {"limits", {{kGpu, "1"}}}};
    Apply(job);
  }
  api::Status Status() { return api::StatusFromJson(StatusOf("train")); }
  bool Waits(const std::string& reason, const std::string& words) {
    return Until([&] {
      const api::Status status = Status();
      const api::Condition* scheduled = status.Find("Scheduled");
      return scheduled != nullptr && scheduled->reason == reason &&
             scheduled->message.find(words) != std::string::npos;
    });
  }
  bool Trains(int pods) {
    return Until([&] {
      const api::Status status = Status();
      return status.state == "Running" && status.world_size == pods;
    });
  }
  bool HasEvent(const std::string& reason, const std::string& words) {
    return Until([&] {
      const auto events = api_->ListAll(kube::Events(), "default", {});
      return events && std::any_of(events->items.begin(), events->items.end(), [&](const Json& e) {
               return e.value("reason", "") == reason &&
                      e.value("note", "").find(words) != std::string::npos;
             });
    });
  }
  bool NothingIsAskedFor() {
    return Until(
        [&] { return autoscaler_->Requests().empty() && autoscaler_->Templates().empty(); });
  }
  std::vector<Json> Pods() {
    const auto pods = api_->ListAll(kube::Pods(), "default", {});
    return pods ? pods->items : std::vector<Json>();
  }

  const std::filesystem::path out_ = dir_ / "out";
  int gpus_ = 0;
  std::unique_ptr<AutoscalerStandIn> autoscaler_;
  std::unique_ptr<RunningOperator> operator_;
};

TEST_F(ProvisioningE2e, AJobAsksForAllItsNodesAtOnceAndStartsOnThem) {
  ApplyJob();
  ASSERT_TRUE(Waits("WaitingForNodes", "is not accepted yet"));
  EXPECT_TRUE(HasEvent("NodesRequested", "2 pods"));
  const std::vector<Json> requests = autoscaler_->Requests();
  ASSERT_EQ(requests.size(), 1u);
  const std::string name = requests[0]["metadata"]["name"];
  EXPECT_EQ(requests[0]["spec"]["podSets"][0]["count"], 2);
  EXPECT_TRUE(Pods().empty());

  autoscaler_->Step();
  ASSERT_TRUE(Waits("WaitingForNodes", "is accepted"));
  EXPECT_EQ(gpus_, 0);
  autoscaler_->Step();
  // Its pods may start at once: the autoscaler has ordered nodes and does not wait for them.
  ASSERT_TRUE(Waits("WaitingForNodes", "has booked capacity"));
  EXPECT_TRUE(HasEvent("NodesProvisioned", name));
  ASSERT_TRUE(Waits("WaitingForNodes", "2 pods stand Pending"));
  int consumers = 0;
  for (const Json& pod : Pods()) {
    const Json& annotations = pod["metadata"]["annotations"];
    ++consumers;
    EXPECT_EQ(annotations.value(provisioning::kConsumeAnnotation, ""), name);
    EXPECT_EQ(annotations.value(provisioning::kClassAnnotation, ""),
              provisioning::kBestEffortAtomic);
  }
  EXPECT_EQ(consumers, 2);
  EXPECT_EQ(autoscaler_->Requests().size(), 1u) << "until they have nodes";

  autoscaler_->Step();
  ASSERT_TRUE(Trains(2));
  EXPECT_TRUE(StepsGoOn(out_));
  EXPECT_TRUE(NothingIsAskedFor());
  autoscaler_->Step();
  EXPECT_EQ(gpus_, 2) << "a job that trains asks for no growth";
  EXPECT_THAT(autoscaler_->violations(), IsEmpty());
  std::ofstream(out_ / "stop").flush();
  EXPECT_TRUE(Until([&] { return Status().state == "Succeeded"; }));
}

TEST_F(ProvisioningE2e, AJobThatIsRefusedSaysWhyAndStartsWhereRoomAppears) {
  autoscaler_->SetMost(1);
  ApplyJob();
  ASSERT_TRUE(Waits("WaitingForNodes", "is not accepted yet"));
  autoscaler_->Step();
  autoscaler_->Step();
  ASSERT_TRUE(Waits("ProvisioningFailed", "CapacityIsNotFound: the pool has no more nodes"));
  EXPECT_THAT(Status().Find("Scheduled")->message, HasSubstr("another one is made at"));
  EXPECT_TRUE(HasEvent("ProvisioningFailed", "the pool has no more nodes"));
  EXPECT_TRUE(Pods().empty());
  SetGpus(2);
  ASSERT_TRUE(Trains(2));
  EXPECT_TRUE(NothingIsAskedFor());
  std::ofstream(out_ / "stop").flush();
  EXPECT_TRUE(Until([&] { return Status().state == "Succeeded"; }));
}

TEST_F(ProvisioningE2e, AJobThatIsSuspendedOrDeletedAsksForNothing) {
  ApplyJob();
  ASSERT_TRUE(Waits("WaitingForNodes", "is not accepted yet"));
  const auto suspend = [&](bool on) {
    return api_
        ->Patch(kube::HorovodJobs(), "default", "train",
                {{"spec", {{"runPolicy", {{"suspend", on}}}}}}, {})
        .has_value();
  };
  ASSERT_TRUE(suspend(true));
  EXPECT_TRUE(NothingIsAskedFor());
  ASSERT_TRUE(suspend(false));
  ASSERT_TRUE(Waits("WaitingForNodes", "is not accepted yet"));
  EXPECT_EQ(autoscaler_->Requests().size(), 1u);
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "train", {}));
  EXPECT_TRUE(NothingIsAskedFor());
}

}  // namespace
}  // namespace ringmaster::app
