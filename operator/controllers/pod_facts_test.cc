// What is read from a pod, one field at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/controllers/node_facts.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_marks.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using planner::PodFacts;
using planner::PodPhase;

// A pod of one container and one sidecar that a kubelet runs.
Json Running() {
  return Json::parse(R"({"metadata": {"name": "p", "uid": "u"},
    "spec": {"nodeName": "gpu-a", "containers": [{"name": "worker"}],
             "initContainers": [{"name": "ringmaster-sidecar"}]},
    "status": {"phase": "Running", "startTime": "2026-01-31T11:00:00Z",
      "containerStatuses": [{"name": "worker", "state": {"running": {}}}],
      "initContainerStatuses": [{"name": "ringmaster-sidecar", "state": {"running": {}}}]}})");
}
Json Terminated(int exit_code) { return {{"terminated", {{"exitCode", exit_code}}}}; }

Json Condition(const char* type, const char* status, const char* reason) {
  return {{"type", type}, {"status", status}, {"reason", reason}, {"message", "so"}};
}

TEST(ReadPodTest, EveryContainerHasToBeTerminated) {
  Json pod = Running();
  pod["status"]["containerStatuses"][0]["state"] = Terminated(0);
  EXPECT_FALSE(ReadPod(pod).all_terminated);
  pod["status"].erase("initContainerStatuses");
  EXPECT_FALSE(ReadPod(pod).all_terminated) << "of the sidecar nothing is said";
  pod["status"]["initContainerStatuses"] = {
      {{"name", "ringmaster-sidecar"}, {"state", Terminated(0)}}};
  const PodFacts facts = ReadPod(pod);
  EXPECT_TRUE(facts.all_terminated);
  EXPECT_TRUE(facts.proven_dead);
  EXPECT_FALSE(ReadPod(Json::parse(R"({"status": {"phase": "Running"}})")).all_terminated)
      << "of a pod without containers nothing is known";
}

TEST(ReadPodTest, ThePhaseFollowsTheContainersWhenItComesLater) {
  Json pod = Running();
  pod["status"]["initContainerStatuses"][0]["state"] = Terminated(0);
  for (const auto& [code, phase] :
       {std::pair(0, PodPhase::kSucceeded), std::pair(1, PodPhase::kFailed)}) {
    pod["status"]["containerStatuses"][0]["state"] = Terminated(code);
    pod["status"]["phase"] = "Running";
    EXPECT_EQ(ReadPod(pod).phase, phase);
    pod["status"]["phase"] = "Failed";  // it has been evicted, say
    EXPECT_EQ(ReadPod(pod).phase, PodPhase::kFailed);
  }
}

TEST(ReadPodTest, AnUnknownPhaseIsNoEnd) {
  Json pod = Running();
  pod["status"]["phase"] = "Unknown";
  EXPECT_FALSE(ReadPod(pod).ended());
}

TEST(ReadPodTest, TheWorkersExitCounts) {
  Json pod = Running();
  pod["spec"]["containers"].push_back({{"name", "helper"}});
  pod["status"]["containerStatuses"].push_back({{"name", "helper"}, {"state", Terminated(3)}});
  EXPECT_EQ(ReadPod(pod).exit_code, std::nullopt);
}

TEST(ReadPodTest, TheReasonOfThePodIsReadWhereItFailed) {
  Json pod = Running();
  pod["status"]["reason"] = "Evicted";
  EXPECT_EQ(ReadPod(pod).reason, "");
  pod["status"]["phase"] = "Failed";
  EXPECT_EQ(ReadPod(pod).reason, "Evicted");
}

TEST(ReadPodTest, OnlyADisruptionThatHoldsIsOneAndItLeavesAnEarlierReason) {
  Json pod = Running();
  pod["status"]["conditions"] = {Condition("DisruptionTarget", "False", "PreemptionByScheduler")};
  EXPECT_FALSE(ReadPod(pod).leaving());
  pod["status"]["conditions"][0]["status"] = "True";
  EXPECT_EQ(ReadPod(pod).drain_reason, "PreemptionByScheduler");
  pod["metadata"]["annotations"][planner::kDrainAnnotation] = "ScaledDown";
  EXPECT_EQ(ReadPod(pod).drain_reason, "ScaledDown");
}

TEST(ReadPodTest, SaysWhatItWaitsForAndOnlyThat) {
  Json pod = Running();
  pod["status"]["conditions"] = {Condition("PodScheduled", "False", "Unschedulable")};
  EXPECT_EQ(ReadPod(pod).waiting, "Unschedulable: so");
  pod["status"]["conditions"][0]["status"] = "True";
  EXPECT_EQ(ReadPod(pod).waiting, "");
  for (const auto& [reason, usual] :
       {std::pair("ContainerCreating", true), std::pair("PodInitializing", true),
        std::pair("CreateContainerConfigError", false)}) {
    pod["status"]["containerStatuses"][0]["state"] = {{"waiting", {{"reason", reason}}}};
    EXPECT_EQ(!ReadPod(pod).unstartable, usual) << reason;
  }
}

TEST(ReadPodTest, AKubeletHasTakenItUpOnceItHasAStartTime) {
  Json pod = Running();
  EXPECT_TRUE(ReadPod(pod).accepted);
  pod["status"].erase("startTime");
  EXPECT_FALSE(ReadPod(pod).accepted);
}

TEST(ReadPodTest, APodIsPreparedFromItsKubeletsFirstWordToItsFirstContainer) {
  const Json creating = {{"waiting", {{"reason", "ContainerCreating"}}}};
  Json pod = Running();
  Json& status = pod["status"];
  EXPECT_FALSE(ReadPod(pod).preparing);
  status["initContainerStatuses"][0]["state"] = creating;
  EXPECT_FALSE(ReadPod(pod).preparing) << "its worker runs";
  status["containerStatuses"][0]["state"] = creating;
  EXPECT_TRUE(ReadPod(pod).preparing);
  for (const Json& begun : {Json{{"running", Json::object()}}, Terminated(0)}) {
    status["initContainerStatuses"][0]["state"] = begun;
    EXPECT_FALSE(ReadPod(pod).preparing) << begun;
  }
  status.erase("initContainerStatuses");
  EXPECT_TRUE(ReadPod(pod).preparing);
  status.erase("startTime");
  EXPECT_FALSE(ReadPod(pod).preparing) << "no kubelet has it";
  status["startTime"] = "2026-01-31T11:00:00Z";
  status["containerStatuses"][0]["state"]["waiting"]["reason"] = "ErrImagePull";
  EXPECT_FALSE(ReadPod(pod).preparing) << "its volumes are there";
}

TEST(ReadPodTest, OurGateIsNotAnybodys) {
  Json pod = Running();
  pod["spec"]["schedulingGates"] = {{{"name", "example.com/mine"}}};
  EXPECT_FALSE(ReadPod(pod).gated);
  pod["spec"]["schedulingGates"].push_back({{"name", planner::kGangGate}});
  EXPECT_TRUE(ReadPod(pod).gated);
}

TEST(ReadPodTest, TheGraceIsThePods) {
  Json pod = Running();
  EXPECT_EQ(ReadPod(pod).grace_seconds, 30);
  pod["spec"]["terminationGracePeriodSeconds"] = 5;
  EXPECT_EQ(ReadPod(pod).grace_seconds, 5);
}

TEST(ReadPodTest, WhatTheKubeletEndedWasNotLostWithItsNode) {
  Json pod = Running();
  pod["status"]["containerStatuses"][0]["state"] = Terminated(1);
  pod["status"]["initContainerStatuses"][0]["state"] = Terminated(0);
  pod["status"]["phase"] = "Failed";
  EXPECT_TRUE(ReadPod(pod).proven_dead);
  EXPECT_EQ(ReadPod(pod).reason, "") << "its worker's exit code speaks for itself";
}

TEST(ReadNodeTest, ItsOwnReadyConditionCountsAndOnlyTrueIsReady) {
  for (const auto& [status, ready] :
       {std::pair("True", true), std::pair("False", false), std::pair("Unknown", false)}) {
    const Json node = {{"metadata", {{"name", "n"}}},
                       {"status",
                        {{"conditions",
                          {Condition("Ready", status, ""), Condition("DiskPressure", "True", ""),
                           Condition("PIDPressure", "False", "")}}}}};
    EXPECT_EQ(ReadNode(node).ready, ready) << status;
  }
}

}  // namespace
}  // namespace ringmaster::controllers
