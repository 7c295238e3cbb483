#include "operator/scheduler/capacity.h"

#include <gtest/gtest.h>

#include "operator/scheduler/quantity.h"

namespace ringmaster::scheduler {
namespace {

Json Node(const std::string& name, const Json& allocatable, const Json& changes = Json::object()) {
  Json node = {{"metadata", {{"name", name}, {"labels", {{"pool", name}}}}},
               {"spec", Json::object()},
               {"status", {{"allocatable", allocatable}}}};
  node["status"]["allocatable"].emplace("pods", "110");
  node.merge_patch(changes);
  return node;
}

Json Pod(const std::string& uid, const Json& requests, const Json& spec = Json::object()) {
  Json pod = {{"metadata", {{"name", uid}, {"uid", uid}}},
              {"spec", {{"containers", {{{"resources", {{"requests", requests}}}}}}}}};
  pod["spec"].merge_patch(spec);
  return pod;
}

const Json kOneGpu = {{"nvidia.com/gpu", "1"}};

TEST(QuantityTest, ReadsWhatKubernetesWrites) {
  EXPECT_DOUBLE_EQ(ParseQuantity("1500m"), 1.5);
  EXPECT_DOUBLE_EQ(ParseQuantity("4Gi"), 4.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(ParseQuantity("1e3"), 1000);
  EXPECT_DOUBLE_EQ(ParseQuantity(2), 2);
  EXPECT_DOUBLE_EQ(ParseQuantity("many"), 0);
}

TEST(RequestsTest, NativeSidecarsCountBesideContainersAndInitContainersByTheLargest) {
  Json pod = Pod("a", {{"cpu", "1"}});
  pod["spec"]["initContainers"] = {
      {{"restartPolicy", "Always"}, {"resources", {{"requests", {{"cpu", "250m"}}}}}},
      {{"resources", {{"requests", {{"cpu", "3"}, {"memory", "1Gi"}}}}}}};
  const Amounts requests = RequestsOf(pod);
  EXPECT_DOUBLE_EQ(requests.at("cpu"), 3);
  EXPECT_DOUBLE_EQ(requests.at("memory"), 1 << 30);
  EXPECT_DOUBLE_EQ(requests.at("pods"), 1);
  pod["spec"]["initContainers"].erase(1);
  EXPECT_DOUBLE_EQ(RequestsOf(pod).at("cpu"), 1.25);
}

class CapacityTest : public testing::Test {
 protected:
  CapacityTest() {
    capacity_.SetNode(Node("a", {{"cpu", "8"}, {"nvidia.com/gpu", "2"}}));
    capacity_.SetNode(Node("b", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}));
  }
  int Fit(int pods, const Json& requests = kOneGpu, const Json& spec = Json::object()) {
    std::vector<Json> gang;
    for (int i = 0; i < pods; ++i) gang.push_back(Pod("g" + std::to_string(i), requests, spec));
    const GangFit fit = FitTogether(capacity_, gang);
    why_ = fit.why;
    return fit.fit;
  }
  Capacity capacity_;
  std::string why_;
};

TEST_F(CapacityTest, AGangFitsOverSeveralNodesAndSaysWhyTheNextPodDoesnt) {
  EXPECT_EQ(Fit(3), 3);
  EXPECT_EQ(why_, "");
  EXPECT_EQ(Fit(4), 3);
  EXPECT_EQ(why_, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
}

TEST_F(CapacityTest, WhatRunsAlreadyTakesItsShareUntilItEnds) {
  Json running = Pod("x", kOneGpu, {{"nodeName", "a"}});
  capacity_.SetPod(running);
  EXPECT_EQ(Fit(3), 2);
  capacity_.SetPod(running);
  EXPECT_EQ(Fit(3), 2) << "said twice, counted once";
  running["status"]["phase"] = "Succeeded";
  capacity_.SetPod(running);
  EXPECT_EQ(Fit(3), 3);
}

TEST_F(CapacityTest, WhoWaitsForTheSchedulerComesFirstUnlessItIsGatedOrGoing) {
  capacity_.SetPod(Pod("x", kOneGpu));
  EXPECT_EQ(Fit(3), 2);
  capacity_.SetPod(Pod("x", kOneGpu, {{"schedulingGates", {{{"name", "wait"}}}}}));
  EXPECT_EQ(Fit(3), 3);
  Json going = Pod("x", kOneGpu);
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  capacity_.SetPod(going);
  EXPECT_EQ(Fit(3), 3);
  capacity_.SetPod(Pod("giant", {{"nvidia.com/gpu", "99"}}));
  EXPECT_EQ(Fit(3), 3) << "who fits nowhere takes nothing";
}

TEST_F(CapacityTest, NodesThatRefuseAreLeftOut) {
  capacity_.SetNode(Node("a", {{"nvidia.com/gpu", "2"}}, {{"spec", {{"unschedulable", true}}}}));
  EXPECT_EQ(Fit(3), 1);
  capacity_.SetNode(Node("a", {{"nvidia.com/gpu", "2"}},
                         {{"spec", {{"taints", {{{"key", "gpu"}, {"effect", "NoSchedule"}}}}}}}));
  EXPECT_EQ(Fit(3), 1);
  EXPECT_NE(why_.find("untolerated taint {gpu"), std::string::npos) << why_;
  EXPECT_EQ(Fit(3, kOneGpu, {{"tolerations", {{{"key", "gpu"}, {"operator", "Exists"}}}}}), 3);
  capacity_.RemoveNode("a");
  EXPECT_EQ(Fit(3), 1);
}

TEST_F(CapacityTest, SelectorsAndRequiredAffinityChooseNodes) {
  EXPECT_EQ(Fit(3, kOneGpu, {{"nodeSelector", {{"pool", "b"}}}}), 1);
  const auto affinity = [](const Json& requirement) {
    return Json{{"affinity",
                 {{"nodeAffinity",
                   {{"requiredDuringSchedulingIgnoredDuringExecution",
                     {{"nodeSelectorTerms", {{{"matchExpressions", {requirement}}}}}}}}}}}};
  };
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "pool"}, {"operator", "In"}, {"values", {"a"}}})), 2);
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "pool"}, {"operator", "NotIn"}, {"values", {"a"}}})), 1);
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "none"}, {"operator", "Exists"}})), 0);
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "none"}, {"operator", "DoesNotExist"}})), 3);
}

TEST_F(CapacityTest, ANodeTakesNoMorePodsThanItsLimit) {
  capacity_.SetNode(Node("a", {{"cpu", "8"}, {"pods", "1"}}));
  capacity_.RemoveNode("b");
  EXPECT_EQ(Fit(2, {{"cpu", "1m"}}), 1);
  EXPECT_EQ(why_, "0/1 nodes are available: 1 Insufficient pods.");
}

}  // namespace
}  // namespace ringmaster::scheduler
