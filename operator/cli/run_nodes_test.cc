#include "operator/cli/run_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/api/labels.h"
#include "operator/api/testing/job_object.h"
#include "operator/api/time.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::cli {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunNodesTest : public ::testing::Test {
 protected:
  ~RunNodesTest() override { store_->Close(); }

  void Make(const kube::Resource& resource, const std::string& ns, const Json& object) {
    const auto made = api_.Create(resource, ns, object);
    ASSERT_TRUE(made) << made.error().message;
  }
  void MakePod(int index, const Json& annotations = Json::object()) {
    Make(kube::Pods(), "default",
         {{"metadata",
           {{"name", "digits-worker-" + std::to_string(index)},
            {"labels", {{api::kJobNameLabel, "digits"}}},
            {"annotations", annotations}}},
          {"spec", {{"nodeName", "a"}, {"containers", {{{"name", "worker"}, {"image", "i"}}}}}}});
  }
  RunNodes Observe(const std::string& job) {
    auto seen = ObserveRunNodes(&api_, "default", job, now_);
    EXPECT_TRUE(seen) << seen.error().message;
    return seen.value_or(RunNodes{});
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  local::InMemoryApi api_{store_};
  const std::chrono::system_clock::time_point now_ = std::chrono::system_clock::now();
};

TEST_F(RunNodesTest, BeforeTheJobIsMadeThereAreNodesAlone) {
  Make(kube::Nodes(), "",
       {{"metadata", {{"name", "a"}}},
        {"spec",
         {{"unschedulable", true},
          {"taints", {{{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}}}}}},
        {"status", {{"allocatable", {{"pods", "3"}}}}}});
  Make(kube::Nodes(), "", {{"metadata", {{"name", "b"}}}});
  const RunNodes seen = Observe("");
  EXPECT_TRUE(seen.nodes.at("a").cordoned);
  EXPECT_TRUE(seen.nodes.at("a").silent);
  EXPECT_EQ(seen.nodes.at("a").pods, "3");
  EXPECT_FALSE(seen.nodes.at("b").cordoned);
  EXPECT_FALSE(seen.nodes.at("b").silent);
  EXPECT_THAT(seen.pods, IsEmpty());
}

TEST_F(RunNodesTest, WhatPodsHaveBeenToldIsRead) {
  Make(kube::HorovodJobs(), "default", api::testing::JobObject("digits", 2, 1));
  MakePod(0);
  MakePod(10, {{api::kDrainAnnotation, "FewerSlots"}});
  MakePod(11, {{api::kDrainAnnotation, "FewerSlots"},
               {api::kDrainSinceAnnotation, "2026-01-01T00:00:00Z"},
               {api::kWarnedAnnotation, "2026-01-01T00:00:00Z"}});
  RunNodes seen = Observe("digits");
  ASSERT_EQ(seen.pods.size(), 3u);
  std::sort(seen.pods.begin(), seen.pods.end(),
            [](const PodSeen& a, const PodSeen& b) { return a.index < b.index; });
  EXPECT_EQ(seen.pods[0].node, "a");
  EXPECT_TRUE(seen.pods[0].stays);
  EXPECT_EQ(seen.pods[1].index, 10);
  EXPECT_FALSE(seen.pods[1].stays);
  EXPECT_TRUE(seen.pods[1].drain_asked);
  EXPECT_FALSE(seen.pods[1].drain_known);
  EXPECT_TRUE(seen.pods[2].drain_known && seen.pods[2].warned);
}

TEST_F(RunNodesTest, APodThatHasEndedDoesNotStay) {
  Make(kube::HorovodJobs(), "default", api::testing::JobObject("digits", 2, 1));
  MakePod(0);
  ASSERT_TRUE(api_.Patch(kube::Pods(), "default", "digits-worker-0",
                         {{"status", {{"phase", "Failed"}}}}, {.subresource = "status"}));
  EXPECT_FALSE(Observe("digits").pods.at(0).stays);
}

TEST_F(RunNodesTest, ANodeIsTroubledUntilItsTimeIsOver) {
  Make(kube::HorovodJobs(), "default", api::testing::JobObject("digits", 2, 1));
  const auto at = [&](int seconds) {
    return api::FormatTime(now_ + std::chrono::seconds(seconds));
  };
  ASSERT_TRUE(api_.Patch(kube::HorovodJobs(), "default", "digits",
                         {{"status",
                           {{"troubledNodes",
                             {{{"name", "bad"}, {"avoidUntil", at(60)}},
                              {{"name", "was-bad"}, {"avoidUntil", at(-60)}}}}}}},
                         {.subresource = "status"}));
  EXPECT_THAT(Observe("digits").troubled, ElementsAre("bad"));
}

TEST_F(RunNodesTest, AJobThatIsNotThereIsAFailure) {
  EXPECT_FALSE(ObserveRunNodes(&api_, "default", "none", now_));
}

}  // namespace
}  // namespace ringmaster::cli
