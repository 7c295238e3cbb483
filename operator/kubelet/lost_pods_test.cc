#include "operator/kubelet/lost_pods.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operator/kube/resources.h"
#include "operator/kubelet/process.h"
#include "operator/kubelet/testing/absent_api.h"

namespace ringmaster::kubelet {
namespace {

using kube::Json;

class LostPodsTest : public ::testing::Test {
 protected:
  LostPodsTest() {
    api_.take_log = [this](const Json& chunk) -> local::Answer<Json> {
      chunks_.push_back(chunk);
      return LogAnswer(70);
    };
  }

  Json Make(const std::string& name, const std::string& node, const Json& status) {
    const Json pod = {{"metadata", {{"name", name}}},
                      {"spec",
                       {{"nodeName", node},
                        {"initContainers", {{{"name", "sidecar"}, {"image", "i"}}}},
                        {"containers", {{{"name", "worker"}, {"image", "i"}}}}}}};
    EXPECT_TRUE(store_->Create(kube::Pods(), "default", pod));
    return *api_.Patch(kube::Pods(), "default", name, {{"status", status}},
                       {.subresource = "status"});
  }
  Json Status(const std::string& name) {
    return (*store_->Get(kube::Pods(), "default", name))["status"];
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  testing::AbsentApi api_{store_};
  std::vector<Json> chunks_;
};

const Json kRunning = {{"phase", "Running"},
                       {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
                       {"containerStatuses",
                        {{{"name", "worker"},
                          {"containerID", "local://7"},
                          {"restartCount", 2},
                          {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}}}}};

TEST_F(LostPodsTest, EveryContainerOfAPodOfTheNodeHasEnded) {
  Make("p", "b-1", kRunning);
  ASSERT_TRUE(EndLostPods(&api_, "b-1"));
  const Json status = Status("p");
  EXPECT_EQ(status["phase"], "Failed");
  EXPECT_EQ(status["conditions"][0]["status"], "False");
  const Json& worker = status["containerStatuses"][0];
  EXPECT_EQ(worker["restartCount"], 2);
  EXPECT_EQ(worker["state"]["terminated"]["reason"], "ContainerStatusUnknown");
  EXPECT_EQ(worker["state"]["terminated"]["startedAt"], "2026-01-01T00:00:00Z");
  EXPECT_FALSE(worker["state"].contains("running"));
  EXPECT_TRUE(status["initContainerStatuses"][0]["state"].contains("terminated"))
      << "it may have been started before anybody was told";
}

TEST_F(LostPodsTest, PodsOfOtherNodesAndEndsThatWereSeenStay) {
  const Json ended = {{"exitCode", 3}, {"reason", "Error"}};
  Json status = kRunning;
  status["containerStatuses"][0]["state"] = {{"terminated", ended}};
  Make("seen", "b-1", status);
  Make("other", "a-0", kRunning);
  ASSERT_TRUE(EndLostPods(&api_, "b-1"));
  EXPECT_EQ(Status("seen")["containerStatuses"][0]["state"]["terminated"], ended);
  EXPECT_EQ(Status("seen")["phase"], "Failed");
  EXPECT_EQ(Status("other")["phase"], "Running");
}

TEST_F(LostPodsTest, WhatIsLeftOfThePodIsKilledFirst) {
  const Json pod = Make("p", "b-1", kRunning);
  const std::string uid = pod["metadata"]["uid"];
  const auto left = Spawn({.argv = {"/bin/sleep", "1000"},
                           .env = {"RINGMASTER_POD=" + uid},
                           .working_dir = "/",
                           .log = "/dev/null"});
  ASSERT_TRUE(left) << left.error();
  ASSERT_TRUE(EndLostPods(&api_, "b-1"));
  EXPECT_TRUE(ProcessesWithEntry("RINGMASTER_POD=" + uid).empty());
  waitpid(*left, nullptr, 0);
}

TEST_F(LostPodsTest, APodThatWasAskedToGoHasGone) {
  Make("p", "b-1", kRunning);
  ASSERT_TRUE(store_->Delete(kube::Pods(), "default", "p", {}));
  ASSERT_TRUE(EndLostPods(&api_, "b-1"));
  EXPECT_FALSE(store_->Get(kube::Pods(), "default", "p"));
}

TEST_F(LostPodsTest, ItsLogsHaveNoMore) {
  Make("p", "b-1", kRunning);
  ASSERT_TRUE(EndLostPods(&api_, "b-1"));
  ASSERT_EQ(chunks_.size(), 2u) << "the first asks where the log ends";
  const auto last = ParseLogChunk(chunks_[1]);
  ASSERT_TRUE(last) << last.error();
  EXPECT_EQ(last->container, "worker");
  EXPECT_EQ(last->at, 70u);
  EXPECT_FALSE(last->running);
}

}  // namespace
}  // namespace ringmaster::kubelet
