#include "operator/local/node_monitor.h"

#include <gtest/gtest.h>

#include "common/fields/fields.h"
#include "operator/kube/resources.h"
#include "operator/kubelet/node_object.h"

namespace ringmaster::local {
namespace {

using std::chrono::seconds;

class NodeMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(store_->Create(kube::Nodes(), "", kubelet::MakeNode({.name = "b-1"})));
  }
  void Beat(const std::string& at) {
    auto node = store_->Get(kube::Nodes(), "", "b-1");
    (*node)["status"]["conditions"] = {
        {{"type", "Ready"}, {"status", "True"}, {"lastHeartbeatTime", at}}};
    ASSERT_TRUE(store_->Update(kube::Nodes(), "", "b-1", *node, "status"));
  }
  bool IsOpen() {
    return fields::ListAt(*store_->Get(kube::Nodes(), "", "b-1"), "/spec/taints").empty();
  }

  const std::shared_ptr<Store> store_ = std::make_shared<Store>(StoreOptions{});
  NodeMonitor monitor_{store_};
  const NodeMonitor::TimePoint begin_;
};

TEST_F(NodeMonitorTest, ASilentNodeGetsNoPodsUntilItIsHeardAgain) {
  Beat("2026-01-01T00:00:00Z");
  monitor_.Look(begin_);
  monitor_.Look(begin_ + seconds(19));
  EXPECT_TRUE(IsOpen());
  monitor_.Look(begin_ + seconds(20));
  EXPECT_FALSE(IsOpen());
  Beat("2025-01-01T00:00:00Z");  // its clock may be wrong
  monitor_.Look(begin_ + seconds(60));
  EXPECT_TRUE(IsOpen());
}

}  // namespace
}  // namespace ringmaster::local
