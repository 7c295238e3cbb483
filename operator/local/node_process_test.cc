#include "operator/local/node_process.h"

#include <gtest/gtest.h>

#include <future>

#include "operator/kube/resources.h"
#include "operator/local/testing/absent_api.h"
#include "tests/support/temp_dir.h"
#include "tests/support/until.h"

namespace ringmaster::local {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using support::Until;

class NodeProcessTest : public ::testing::Test {
 protected:
  void Start(seconds abandon_after) {
    if (!api_->take_log)
      api_->take_log = [](const kube::Json&) -> Answer<kube::Json> { return LogAnswer(0); };
    NodeOptions options{.name = "b-1", .address = "10.0.0.7", .run_dir = dir_.path()};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.abandon_after = abandon_after;
    auto node = NodeProcess::Start(options, api_);
    ASSERT_TRUE(node) << node.error().message;
    node_ = std::move(*node);
    ended_ = std::async(std::launch::async, [this] { return node_->Await(milliseconds(100)); });
  }
  void RunPod() {
    ASSERT_TRUE(store_->Create(
        kube::Pods(), "default",
        {{"metadata", {{"name", "p"}}},
         {"spec",
          {{"nodeName", "b-1"},
           {"containers",
            {{{"name", "main"}, {"image", "any"}, {"command", {"sleep", "1000"}}}}}}}}));
    ASSERT_TRUE(Until([&] {
      return (*store_->Get(kube::Pods(), "default", "p"))["status"].value("phase", "") == "Running";
    }));
  }

  const support::TempDir dir_;
  const std::shared_ptr<Store> store_ = std::make_shared<Store>(StoreOptions{});
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

TEST_F(NodeProcessTest, ItSaysWhetherTheServerHasTheLogs) {
  api_->take_log = [](const kube::Json&) -> Answer<kube::Json> {
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

}  // namespace
}  // namespace ringmaster::local
