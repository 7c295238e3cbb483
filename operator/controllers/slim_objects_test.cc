#include "operator/controllers/slim_objects.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/controllers/node_facts.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"
#include "operator/kube/parse_object.h"
#include "operator/scheduler/capacity.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

// A pod of a job that waits for a node, with many other fields.
Json WorkerPod() {
  return Json::parse(R"({
    "metadata": {"name": "digits-worker-3", "namespace": "ns", "uid": "u", "resourceVersion": "7",
      "creationTimestamp": "2026-11-01T10:00:00Z",
      "managedFields": [{"manager": "kubelet"}],
      "annotations": {"ringmaster.dev/drain": "ScaledDown",
                      "ringmaster.dev/shield": "cluster-autoscaler.kubernetes.io/safe-to-evict",
                      "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                      "k8s.v1.cni.cncf.io/network-status": "long",
                      "kubectl.kubernetes.io/last-applied-configuration": "long"},
      "labels": {"training.kubeflow.org/job-role": "worker", "ringmaster.dev/job-uid": "j",
                 "training.kubeflow.org/replica-index": "3"},
      "finalizers": ["ringmaster.dev/proof-of-death"],
      "ownerReferences": [{"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "name": "digits", "uid": "j", "controller": true}]},
    "spec": {"schedulingGates": [{"name": "ringmaster.dev/gang"}], "nodeSelector": {"pool": "gpu"},
      "priority": 5, "preemptionPolicy": "Never",
      "terminationGracePeriodSeconds": 20, "volumes": [{"name": "v"}],
      "tolerations": [{"operator": "Exists"}],
      "initContainers": [{"name": "sidecar", "restartPolicy": "Always", "env": [{"name": "A"}],
                          "resources": {"requests": {"cpu": "1"}}}],
      "containers": [{"name": "worker", "image": "i", "command": ["a"],
                      "resources": {"requests": {"cpu": "2"}}}]},
    "status": {"phase": "Pending", "podIPs": [],
      "conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                      "message": "no"}],
      "containerStatuses": [{"name": "worker", "image": "i", "imageID": "long",
        "lastState": {"terminated": {"exitCode": 3}},
        "state": {"waiting": {"reason": "ErrImagePull", "message": "m"}}}]}})");
}

TEST(SlimObjectsTest, OfAWorkerPodAllStaysThatIsRead) {
  const Json pod = WorkerPod(), slim = SlimPod(pod);
  const planner::PodFacts was = ReadPod(pod), is = ReadPod(slim);
  EXPECT_EQ(is.name, was.name);
  EXPECT_EQ(is.index, 3);
  EXPECT_EQ(is.created, was.created);
  EXPECT_TRUE(is.gated && is.has_finalizer);
  EXPECT_EQ(is.grace_seconds, 20);
  EXPECT_EQ(is.drain_reason, "ScaledDown");
  EXPECT_EQ(is.waiting, was.waiting);
  EXPECT_EQ(is.unstartable.message, was.unstartable.message);
  EXPECT_EQ(JobKeyOf(slim), "ns/digits");
  EXPECT_TRUE(IsOwnedBy(slim, "j") && IsWorkerPod(slim));
  EXPECT_EQ(scheduler::RequestsOf(slim), scheduler::RequestsOf(pod));
  for (const char* read : {"nodeSelector", "priority", "preemptionPolicy"}) {
    EXPECT_EQ(slim["spec"][read], pod["spec"][read]);
  }
  for (const char* unread : {"managedFields", "volumes", "env", "imageID", "lastState", "command",
                             "last-applied", "ContainersReady", "k8s.v1.cni", "apiVersion"}) {
    EXPECT_EQ(slim.dump().find(unread), std::string::npos) << unread;
  }
}

// A watch leaves these fields out, so that nobody ever sees them.
Json WithoutUnread(const Json& object, kube::Unread unread) {
  return kube::ParseObjectOrDiscard(object.dump(), {}, unread);
}

TEST(SlimObjectsTest, WhatIsUnreadIsDroppedAnyway) {
  Json pod = WorkerPod();
  for (const kube::UnreadField& field : UnreadOfPods()) {
    Json& parent =
        field.parent == "spec" || field.parent == "status" ? pod[std::string(field.parent)]
        : pod["spec"].contains(field.parent) ? pod["spec"][std::string(field.parent)][0]
                                             : pod["status"][std::string(field.parent)][0];
    parent[std::string(field.name)] = "x";
  }
  EXPECT_NE(WithoutUnread(pod, UnreadOfPods()), pod);
  EXPECT_EQ(SlimPod(WithoutUnread(pod, UnreadOfPods())), SlimPod(pod));
  const Json node = Json::parse(R"({"metadata": {"name": "n"}, "spec": {}, "status":
      {"allocatable": {"cpu": "4"}, "images": [{"names": ["long"]}]}})");
  EXPECT_NE(WithoutUnread(node, UnreadOfNodes()), node);
  EXPECT_EQ(SlimNode(WithoutUnread(node, UnreadOfNodes())), SlimNode(node));
}

TEST(SlimObjectsTest, OfAPodThatRunsItStaysThatSomebodyWantsItToGo) {
  Json pod = WorkerPod();
  pod["metadata"]["annotations"].erase("ringmaster.dev/drain");
  pod["status"] = Json::parse(R"({"phase": "Running", "conditions": [
      {"type": "PodScheduled", "status": "True"},
      {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
      "containerStatuses": [{"name": "worker", "image": "i", "ready": true,
                             "state": {"running": {"startedAt": "2026-11-01T10:00:05Z"}}}]})");
  const planner::PodFacts was = ReadPod(pod), is = ReadPod(SlimPod(pod));
  EXPECT_EQ(is.drain_reason, "EvictionByEvictionAPI");
  EXPECT_EQ(is.running_since, was.running_since);
  EXPECT_TRUE(is.running_since);
  EXPECT_EQ(is.shields, was.shields);
  EXPECT_EQ(is.shields.size(), 1u);
  EXPECT_EQ(SlimPod(pod)["status"]["containerStatuses"][0].count("image"), 0u);
}

TEST(SlimObjectsTest, SlimmingTwiceChangesNothing) {
  const Json slim = SlimPod(WorkerPod());
  EXPECT_EQ(SlimPod(slim), slim);
}

TEST(SlimObjectsTest, OfOthersPodsOnlyWhatTheyTakeStays) {
  Json pod = WorkerPod();
  pod["metadata"].erase("labels");
  pod["metadata"].erase("ownerReferences");
  const Json slim = SlimPod(pod);
  EXPECT_FALSE(IsWorkerPod(slim));
  EXPECT_FALSE(slim["metadata"].contains("annotations"));
  EXPECT_FALSE(slim["status"].contains("containerStatuses"));
  EXPECT_EQ(scheduler::RequestsOf(slim), scheduler::RequestsOf(pod));
}

TEST(SlimObjectsTest, OfOthersPodsThatWaitItStaysWhetherTheSchedulerHasRefusedThem) {
  Json pod = Json::parse(R"({"metadata": {"name": "p"}, "spec": {}, "status": {"conditions": [
      {"type": "Ready", "status": "False"},
      {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "long"}]}})");
  const Json kept =
      Json::parse(R"([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}])");
  EXPECT_EQ(SlimPod(pod)["status"]["conditions"], kept);
  EXPECT_EQ(SlimPod(SlimPod(pod)), SlimPod(pod));
  pod["spec"]["nodeName"] = "n";
  EXPECT_FALSE(SlimPod(pod)["status"].contains("conditions"));
}

TEST(SlimObjectsTest, APodWithoutLabelsIsKnownByItsOwner) {
  Json pod = WorkerPod();
  pod["metadata"].erase("labels");
  EXPECT_TRUE(IsWorkerPod(pod));
}

TEST(SlimObjectsTest, WhatIsNoPodIsNoTrouble) {
  for (const char* text : {"{}", "[]", "7", R"({"metadata": 1, "spec": [], "status": "x"})",
                           R"({"spec": {"containers": [1, {}], "nodeName": 5}})"}) {
    EXPECT_NO_THROW((void)SlimPod(Json::parse(text))) << text;
    EXPECT_NO_THROW((void)SlimNode(Json::parse(text))) << text;
  }
}

TEST(SlimObjectsTest, OfANodeItsRulesItsConditionAndItsBootStay) {
  const Json node = Json::parse(R"({
    "metadata": {"name": "n", "labels": {"zone": "a"}, "annotations": {"a": "b"}},
    "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoExecute"}], "podCIDR": "x"},
    "status": {"allocatable": {"cpu": "4"}, "images": [{"names": ["long"]}],
      "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "t"}],
      "nodeInfo": {"bootID": "b", "machineID": "m", "systemUUID": "s", "kernelVersion": "k"}}})");
  const Json slim = SlimNode(node);
  EXPECT_EQ(ReadNode(slim), ReadNode(node));
  EXPECT_EQ(slim["status"]["allocatable"], node["status"]["allocatable"]);
  EXPECT_EQ(slim["metadata"]["labels"], node["metadata"]["labels"]);
  EXPECT_FALSE(slim["status"].contains("images"));
  EXPECT_EQ(SlimNode(slim), slim);
}

}  // namespace
}  // namespace ringmaster::controllers
