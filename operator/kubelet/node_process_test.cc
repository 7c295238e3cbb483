#include "operator/kubelet/node_process.h"

#include <gtest/gtest.h>

#include <fstream>
#include <future>

#include "operator/api/labels.h"
#include "operator/kube/resources.h"
#include "operator/kubelet/node_object.h"
#include "operator/kubelet/testing/absent_api.h"
#include "tests/support/temp_dir.h"
#include "tests/support/until.h"

namespace ringmaster::kubelet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::Until;

class NodeProcessTest : public ::testing::Test {
 protected:
  void Start(seconds abandon_after) {
    if (!api_->take_log)
      api_->take_log = [](const kube::Json&) -> local::Answer<kube::Json> { return LogAnswer(0); };
    NodeOptions options{.name = "b-1", .address = "10.0.0.7", .run_dir = dir_.path()};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.abandon_after = abandon_after;
    options.again = again_;
    auto node = NodeProcess::Start(options, api_);
    ASSERT_TRUE(node) << node.error().message;
    node_ = std::move(*node);
    ended_ = std::async(std::launch::async, [this] { return node_->Await(grace_); });
  }
  static kube::Json SleepingPod(const std::string& name, const std::string& script = "sleep 1000") {
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"nodeName", "b-1"},
              {"containers",
               {{{"name", "main"}, {"image", "any"}, {"command", {"sh", "-c", script}}}}}}}};
  }
  // The object that a node process has left.
  static kube::Json Left() {
    kube::Json node = MakeNode({.name = "b-1", .address = "10.0.0.6", .pods = 1});
    node["metadata"]["finalizers"] = {api::kNodeFinalizer};
    node["spec"]["unschedulable"] = true;
    std::string machine;
    std::ifstream("/etc/machine-id") >> machine;
    if (!machine.empty()) node["status"]["nodeInfo"]["machineID"] = machine;
    return node;
  }
  void RunPod(const std::string& script = "sleep 1000") {
    ASSERT_TRUE(store_->Create(kube::Pods(), "default", SleepingPod("p", script)));
    ASSERT_TRUE(Until([&] {
      return (*store_->Get(kube::Pods(), "default", "p"))["status"].value("phase", "") == "Running";
    }));
  }

  bool again_ = false;
  milliseconds grace_{100};
  const support::TempDir dir_;
  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<testing::AbsentApi> api_ = std::make_shared<testing::AbsentApi>(store_);
  std::unique_ptr<NodeProcess> node_;
  std::future<NodeResult> ended_;
};

TEST_F(NodeProcessTest, ItEndsItsPodsAndLetsGoWhenItsNodeIsDeleted) {
  Start(seconds(3600));
  RunPod();
  ASSERT_TRUE(store_->Delete(kube::Nodes(), "", "b-1", {}));
  EXPECT_EQ(ended_.get().end, NodeEnd::kReleased);
  EXPECT_FALSE(store_->Get(kube::Nodes(), "", "b-1"));
  EXPECT_EQ((*store_->Get(kube::Pods(), "default", "p"))["status"]["phase"], "Failed");
}

TEST_F(NodeProcessTest, ASignalTakesTheNodeAway) {
  Start(seconds(3600));
  node_->RequestStop();
  EXPECT_EQ(ended_.get().end, NodeEnd::kSignal);
  EXPECT_FALSE(store_->Get(kube::Nodes(), "", "b-1"));
}

TEST_F(NodeProcessTest, APodThatEndsWellWithItsNodeHasFailed) {
  grace_ = seconds(30);
  Start(seconds(3600));
  const std::string hears = dir_.path() / "hears";
  RunPod("trap 'exit 0' TERM; touch " + hears + "; while :; do sleep 0.01; done");
  ASSERT_TRUE(Until([&] { return std::filesystem::exists(hears); }));
  node_->RequestStop();
  ended_.get();
  const kube::Json status = (*store_->Get(kube::Pods(), "default", "p"))["status"];
  EXPECT_EQ(status["phase"], "Failed")
      << "nobody is to take it for a worker that has done its work";
  EXPECT_EQ(status["reason"], "Terminated");
  EXPECT_EQ(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 0);
}

TEST_F(NodeProcessTest, ItSaysWhetherTheServerHasTheLogs) {
  api_->take_log = [](const kube::Json&) -> local::Answer<kube::Json> {
    return tl::unexpected(kube::Json{{"message", "no space"}});
  };
  Start(seconds(3600));
  RunPod();
  ASSERT_TRUE(store_->Delete(kube::Nodes(), "", "b-1", {}));
  const NodeResult result = ended_.get();
  EXPECT_EQ(result.end, NodeEnd::kReleased);
  EXPECT_FALSE(result.logs_sent);
}

TEST_F(NodeProcessTest, ItGivesUpAServerThatStaysAway) {
  Start(seconds(1));
  RunPod();
  api_->away = true;
  EXPECT_EQ(ended_.get().end, NodeEnd::kAbandoned);
}

TEST_F(NodeProcessTest, ANameThatIsTakenIsAnError) {
  Start(seconds(3600));
  const auto second =
      NodeProcess::Start({.name = "b-1", .address = "10.0.0.8", .run_dir = dir_.path()}, api_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, kube::ErrorCode::kAlreadyExists);
  node_->RequestStop();
  ended_.get();
}

TEST_F(NodeProcessTest, WhoComesAgainTakesOverWhatTheDeadOneHasLeft) {
  ASSERT_TRUE(store_->Create(kube::Nodes(), "", Left()));
  ASSERT_TRUE(store_->Create(kube::Pods(), "default", SleepingPod("lost")));
  again_ = true;
  Start(seconds(3600));
  EXPECT_EQ((*store_->Get(kube::Pods(), "default", "lost"))["status"]["phase"], "Failed");
  const kube::Json node = *store_->Get(kube::Nodes(), "", "b-1");
  EXPECT_EQ(node["spec"]["unschedulable"], true) << "what others have written stays";
  EXPECT_EQ(node["status"]["addresses"][0]["address"], "10.0.0.7");
  RunPod();
  ASSERT_TRUE(store_->Delete(kube::Nodes(), "", "b-1", {}));
  EXPECT_EQ(ended_.get().end, NodeEnd::kReleased);
  EXPECT_FALSE(store_->Get(kube::Nodes(), "", "b-1"));
}

TEST_F(NodeProcessTest, AnotherMachineOfTheNameTakesNothingOver) {
  kube::Json left = Left();
  left["status"]["nodeInfo"]["machineID"] = "another";
  ASSERT_TRUE(store_->Create(kube::Nodes(), "", left));
  ASSERT_TRUE(store_->Create(kube::Pods(), "default", SleepingPod("lost")));
  const auto node = NodeProcess::Start(
      {.name = "b-1", .address = "10.0.0.7", .run_dir = dir_.path(), .again = true}, api_);
  ASSERT_FALSE(node);
  EXPECT_EQ((*store_->Get(kube::Pods(), "default", "lost"))["status"].value("phase", "Pending"),
            "Pending");
}

}  // namespace
}  // namespace ringmaster::kubelet
