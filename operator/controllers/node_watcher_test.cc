#include "operator/controllers/node_watcher.h"

#include <thread>

#include "operator/controllers/testing/parts_fixture.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using support::Until;
using ::testing::Contains;
using ::testing::IsEmpty;

class NodeWatcherTest : public testing::PartsTest {
 protected:
  ~NodeWatcherTest() override { watcher_.Stop(); }
  void MakeNode(const std::string& name, const std::string& boot = "boot-1") {
    const auto made = api_->Create(
        kube::Nodes(), "",
        {{"metadata", {{"name", name}}},
         {"status",
          {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
           {"nodeInfo", {{"bootID", boot}, {"machineID", "m"}, {"systemUUID", "s"}}}}}});
    ASSERT_TRUE(made) << made.error().message;
  }
  std::vector<std::string> Names(std::vector<planner::PodFacts>* pods) {
    std::vector<std::string> names;
    for (const auto& node : watcher_.Observe(pods)) names.push_back(node.name);
    return names;
  }
  std::vector<std::string> Changed() {
    const sync::MutexLock lock(&mu_);
    return changed_;
  }

  sync::Mutex mu_;
  std::vector<std::string> changed_ GUARDED_BY(mu_);
  NodeWatcher watcher_{
      api_,
      {.disruption_taints = planner::DefaultDisruptionTaints(), .trust_node_deletion = true},
      [this](const std::string& node) {
        const sync::MutexLock lock(&mu_);
        changed_.push_back(node);
      }};
};

TEST_F(NodeWatcherTest, NodesMatterThatPodsAreOnOrWhoseEndIsAnnounced) {
  for (const char* name : {"a", "b", "c"}) ASSERT_NO_FATAL_FAILURE(MakeNode(name));
  watcher_.Start();
  std::vector<planner::PodFacts> pods = {{.name = "p", .node = "a"}};
  EXPECT_THAT(Names(&pods), ::testing::ElementsAre("a"));
  ASSERT_TRUE(api_->Patch(kube::Nodes(), "", "b", {{"spec", {{"unschedulable", true}}}}, {}));
  EXPECT_TRUE(Until([&] { return Names(&pods) == std::vector<std::string>{"a", "b"}; }));
  pods[0].announced["c"] = "NodeCordoned";
  EXPECT_THAT(Names(&pods), Contains("c"));
}

TEST_F(NodeWatcherTest, OnlyWhatMattersOfANodeIsAChange) {
  ASSERT_NO_FATAL_FAILURE(MakeNode("a"));
  watcher_.Start();
  ASSERT_TRUE(Until([&] { return Changed().size() == 1; }));
  ASSERT_TRUE(api_->Patch(kube::Nodes(), "", "a", {{"metadata", {{"labels", {{"x", "y"}}}}}}, {}));
  ASSERT_TRUE(api_->Patch(kube::Nodes(), "", "a", {{"spec", {{"unschedulable", true}}}}, {}));
  ASSERT_TRUE(Until([&] { return Changed().size() >= 2; }));
  EXPECT_EQ(Changed().size(), 2u) << "a label says nothing";
}

TEST_F(NodeWatcherTest, ANodeThatRunsAnotherBootProvesADeath) {
  ASSERT_NO_FATAL_FAILURE(MakeNode("a", "boot-2"));
  watcher_.Start();
  std::vector<planner::PodFacts> pods = {
      {.name = "p", .node = "a", .accepted = true, .boot = "boot-1 m s"},
      {.name = "q", .node = "a", .accepted = true, .boot = "boot-2 m s"}};
  (void)watcher_.Observe(&pods);
  EXPECT_TRUE(pods[0].proven_dead);
  EXPECT_FALSE(pods[1].proven_dead);
}

// The cache may be older than its pods.
TEST_F(NodeWatcherTest, ANodeThatProvesDeathsIsReadOnceInALookAndKeepsItsPlace) {
  ASSERT_NO_FATAL_FAILURE(MakeNode("a", "boot-2"));
  ASSERT_TRUE(
      api_->Patch(kube::Nodes(), "", "a", {{"metadata", {{"labels", {{"rack", "r7"}}}}}}, {}));
  watcher_.Start();
  const planner::PodFacts dead = {.name = "p", .node = "a", .accepted = true, .boot = "boot-1 m s"};
  std::vector<planner::PodFacts> pods(5, dead);
  const int before = api_->lists;
  const auto nodes = watcher_.Observe(&pods, "rack");
  EXPECT_EQ(api_->lists - before, 1);
  for (const planner::PodFacts& pod : pods) EXPECT_TRUE(pod.proven_dead);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].place, "r7");
}

TEST_F(NodeWatcherTest, ANodeThatIsGoneIsProofWhereTheCloudAloneRemovesNodes) {
  watcher_.Start();
  std::vector<planner::PodFacts> pods(3, {.name = "p", .node = "gone", .accepted = true});
  const int before = api_->node_reads;
  (void)watcher_.Observe(&pods);
  EXPECT_EQ(api_->node_reads - before, 1) << "one read says it of all of its pods";
  for (const planner::PodFacts& pod : pods) EXPECT_TRUE(pod.proven_dead);
  std::vector<planner::PodFacts> same = {{.name = "p", .node = "gone", .accepted = true}};
  nodes_.Start();  // the fixture's watcher, which does not trust deletions
  (void)nodes_.Observe(&same);
  nodes_.Stop();
  EXPECT_FALSE(same[0].proven_dead);
}

TEST_F(NodeWatcherTest, WithoutTheRightToListNodesThereIsNoWarning) {
  ASSERT_NO_FATAL_FAILURE(MakeNode("a"));
  api_->refused_verb = "list";
  watcher_.Start();
  std::vector<planner::PodFacts> pods = {{.name = "p", .node = "a", .accepted = true}};
  EXPECT_THAT(Names(&pods), IsEmpty());
  EXPECT_FALSE(pods[0].proven_dead);
}

TEST_F(NodeWatcherTest, ATokenThatHasExpiredAsItStartsCostsNoWarningLater) {
  ASSERT_NO_FATAL_FAILURE(MakeNode("a"));
  ASSERT_TRUE(api_->Patch(kube::Nodes(), "", "a", {{"spec", {{"unschedulable", true}}}}, {}));
  api_->refusal = {
      .code = kube::ErrorCode::kForbidden, .http_status = 401, .message = "Unauthorized"};
  api_->refused_verb = "list";
  const std::jthread start([this] { watcher_.Start(); });  // waits for the nodes
  ASSERT_TRUE(Until([&] { return api_->refusals > 0; }));
  api_->refused_verb = "";
  std::vector<planner::PodFacts> none;
  EXPECT_TRUE(Until([&] { return Names(&none) == std::vector<std::string>{"a"}; }));
}

}  // namespace
}  // namespace ringmaster::controllers
