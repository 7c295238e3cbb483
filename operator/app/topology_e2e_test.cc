// A job whose pods have to be in one rack, on a local cluster of several nodes with real sidecars
// and workers, under an operator that tracks free capacity.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "operator/api/testing/job_object.h"
#include "operator/app/testing/cluster_e2e.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using testing::HasSubstr;

constexpr char kRack[] = "example.com/rack";

class TopologyE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    StartCluster({.bin_dir = RM_BIN_DIR, .nodes = 4});
    const auto nodes = api_->ListAll(kube::Nodes(), "", {});
    ASSERT_TRUE(nodes && nodes->items.size() == 4);
    // Two racks of two nodes each, with a GPU on each node; the names don't show the rack.
    for (std::size_t i = 0; i < nodes->items.size(); ++i) {
      const std::string name = nodes->items[i]["metadata"]["name"];
      rack_of_[name] = i % 2 == 0 ? "r1" : "r2";
      ASSERT_TRUE(api_->Patch(kube::Nodes(), "", name,
                              {{"metadata", {{"labels", {{kRack, rack_of_[name]}}}}}}, {}));
      ASSERT_TRUE(api_->Patch(kube::Nodes(), "", name,
                              {{"status", {{"allocatable", {{kGpu, "1"}}}}}},
                              {.subresource = "status"}));
    }
    operator_ = std::make_unique<RunningOperator>(RunningOperator::Options{
        .name = "op", .dir = dir_, .flags = OperatorFlags({"--gang-admission"})});
  }
  void TearDown() override {
    if (HasFailure() && operator_ != nullptr) std::cerr << operator_->Log();
    operator_.reset();
    ClusterE2e::TearDown();
  }

  // Two pods of the job have to train together; each has a GPU.
  void ApplyJob(const std::string& name, int replicas, const Json& topology) {
    std::filesystem::create_directory(dir_ / name);
    Json job = api::testing::JobObject(name, replicas, 2,
                                       {WORKER_BINARY, (dir_ / name).string(), "--sleep-ms", "20"});
    job["spec"]["elasticPolicy"]["resizeIntervalSeconds"] = 0;
    job["spec"]["runPolicy"]["schedulingPolicy"]["topology"] = topology;
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"] = {
        {"limits", {{kGpu, "1"}}}};
    Apply(job);
  }
  bool Trains(const std::string& name, int pods) {
    return Until([&] { return StatusOf(name).value("worldSize", 0) == pods; }) &&
           StepsGoOn(dir_ / name);
  }
  // The racks of the pods in the order of their ranks.
  std::vector<std::string> RacksByRank(const std::string& name) {
    std::vector<std::string> racks;
    for (const Json& rank : StatusOf(name).value("ring", Json::array()))
      racks.push_back(rack_of_[rank.value("node", "")]);
    return racks;
  }

  std::map<std::string, std::string> rack_of_;  // by node
  std::unique_ptr<RunningOperator> operator_;
};

TEST_F(TopologyE2e, PodsThatHaveToBeTogetherTrainInOneRack) {
  ApplyJob("together", 3, {{"required", kRack}});
  ASSERT_TRUE(Trains("together", 2));
  std::set<std::string> racks;
  const auto pods = api_->ListAll(kube::Pods(), "default", {});
  ASSERT_TRUE(pods);
  for (const Json& pod : pods->items) {
    const std::string node = pod["spec"].value("nodeName", "");
    if (!node.empty()) racks.insert(rack_of_[node]);
  }
  EXPECT_EQ(racks.size(), 1u);
  const Json conditions = StatusOf("together")["conditions"];
  EXPECT_THAT(conditions.dump(), HasSubstr(std::string("in ") + kRack + "=" + *racks.begin()))
      << "the third waits, though the other rack has room";

  ASSERT_TRUE(cluster_->KillPod("default", "together-worker-0"));
  ASSERT_TRUE(Until([&] { return StatusOf("together").value("podsReplaced", 0) == 1; }));
  EXPECT_TRUE(Trains("together", 2));
  const auto after = api_->ListAll(kube::Pods(), "default", {});
  ASSERT_TRUE(after);
  for (const Json& pod : after->items) {
    const std::string node = pod["spec"].value("nodeName", "");
    if (!node.empty()) {
      EXPECT_EQ(rack_of_[node], *racks.begin()) << "the new one follows";
    }
  }
}

TEST_F(TopologyE2e, WhoWouldRatherBeApartThanWaitTrainsOnAllNodesWithNeighboursInOneRack) {
  ApplyJob("apart", 4, {{"preferred", kRack}});
  ASSERT_TRUE(Trains("apart", 4));
  const std::vector<std::string> racks = RacksByRank("apart");
  ASSERT_EQ(racks.size(), 4u) << StatusOf("apart").dump(1);
  EXPECT_EQ(racks[0], racks[1]) << StatusOf("apart").dump(1);
  EXPECT_EQ(racks[2], racks[3]);
  EXPECT_NE(racks[0], racks[2]);
}

}  // namespace
}  // namespace ringmaster::app
