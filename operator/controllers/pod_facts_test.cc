// What is read from a pod, one field at a time.
#include "operator/controllers/pod_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/controllers/node_facts.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using planner::PodFacts;
using planner::PodPhase;

// A pod with one container and one sidecar, running on a node.
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
    pod["status"]["phase"] = "Failed";  // it may have been evicted, for example
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

// A pod with a container beside its worker, in these states.
Json Beside(const Json& worker, const Json& helper, const char* phase) {
  Json pod = Running();
  pod["spec"]["containers"].push_back({{"name", "helper"}});
  pod["status"]["containerStatuses"] = {{{"name", "helper"}, {"state", helper}},
                                        {{"name", "worker"}, {"state", worker}}};
  pod["status"]["phase"] = phase;
  return pod;
}

TEST(ReadPodTest, WhatRunsBesideTheWorkerKeepsNoPodAlive) {
  const Json runs = {{"running", Json::object()}};
  for (const auto& [code, phase] :
       {std::pair(0, PodPhase::kSucceeded), std::pair(1, PodPhase::kFailed)}) {
    const PodFacts facts = ReadPod(Beside(Terminated(code), runs, "Running"));
    EXPECT_EQ(facts.phase, phase);
    EXPECT_TRUE(facts.lingers);
    EXPECT_FALSE(facts.proven_dead);
    EXPECT_FALSE(ReadPod(Beside(Terminated(code), Terminated(0), "Running")).lingers);
  }
  EXPECT_EQ(ReadPod(Beside(runs, runs, "Running")).phase, PodPhase::kRunning);
  EXPECT_FALSE(ReadPod(Beside(runs, runs, "Running")).lingers);
}

TEST(ReadPodTest, HowTheOthersEndedIsNotTheWorkersFault) {
  EXPECT_EQ(ReadPod(Beside(Terminated(0), Terminated(4), "Failed")).phase, PodPhase::kSucceeded);
  EXPECT_EQ(ReadPod(Beside(Terminated(1), Terminated(4), "Failed")).phase, PodPhase::kFailed);
  EXPECT_EQ(ReadPod(Beside(Terminated(0), Terminated(0), "Failed")).phase, PodPhase::kFailed)
      << "the API server has its reason";
  Json evicted = Beside(Terminated(0), Terminated(4), "Failed");
  evicted["status"]["reason"] = "Evicted";
  EXPECT_EQ(ReadPod(evicted).phase, PodPhase::kFailed);
  const Json unseen = {{"terminated", {{"exitCode", 137}, {"reason", "ContainerStatusUnknown"}}}};
  EXPECT_EQ(ReadPod(Beside(unseen, Terminated(4), "Failed")).phase, PodPhase::kFailed);
}

std::string LastWords(const std::string& log) {
  Json pod = Running();
  pod["status"]["containerStatuses"][0]["state"] = Terminated(1);
  pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = log;
  return ReadPod(pod).last_words;
}

TEST(ReadPodTest, TheLastLineOfTheLogIsQuoted) {
  EXPECT_EQ(LastWords("Traceback:\n  File\nValueError: no\n\n"), "ValueError: no");
  EXPECT_EQ(LastWords("  10%\r  20% \r\n"), "20%") << "of a progress bar";
  EXPECT_EQ(LastWords("one"), "one");
  EXPECT_EQ(LastWords(""), "");
  EXPECT_EQ(LastWords(" \n\t\n"), "");
}

TEST(ReadPodTest, OfTheLauncherOnlyWhatIsWrongIsQuoted) {
  const std::string account =
      "ringmaster-launcher: worker exited slot=0\nringmaster-launcher: stopping all workers\n";
  EXPECT_EQ(LastWords("ValueError: no\n" + account), "ValueError: no");
  EXPECT_EQ(LastWords("working\nringmaster-launcher: error: cannot start 'x'\n" + account),
            "ringmaster-launcher: error: cannot start 'x'");
  EXPECT_EQ(LastWords(account), "");
}

TEST(ReadPodTest, ALongLineIsCutBetweenCharacters) {
  const std::string cut = LastWords("x" + [] {
    std::string text;
    for (int i = 0; i < 150; ++i) text += "\u00e9";
    return text;
  }());
  EXPECT_EQ(cut.size(), 199u + 3) << "199 bytes of whole characters and the dots";
  EXPECT_EQ(cut.substr(cut.size() - 5), "\u00e9...");
}

TEST(ReadPodTest, AnInitContainerThatFailedIsNamed) {
  Json pod = Running();
  pod["spec"]["initContainers"] = {{{"name", "ringmaster-sidecar"}, {"restartPolicy", "Always"}},
                                   {{"name", "fetch"}},
                                   {{"name", "unpack"}}};
  Json failed = Terminated(3);
  failed["terminated"]["message"] = "no route to the store\n";
  pod["status"]["initContainerStatuses"] = {
      {{"name", "fetch"}, {"state", failed}},
      {{"name", "unpack"}, {"state", {{"waiting", {{"reason", "PodInitializing"}}}}}},
      {{"name", "ringmaster-sidecar"}, {"state", Terminated(143)}}};
  pod["status"]["containerStatuses"][0]["state"] = {{"waiting", {{"reason", "PodInitializing"}}}};
  EXPECT_FALSE(ReadPod(pod).failed_init) << "it is tried again as long as the pod has not failed";
  pod["status"]["phase"] = "Failed";
  const PodFacts facts = ReadPod(pod);
  ASSERT_TRUE(facts.failed_init);
  EXPECT_EQ(facts.failed_init->name, "fetch");
  EXPECT_EQ(facts.failed_init->exit_code, 3);
  EXPECT_EQ(facts.last_words, "no route to the store");
  Json& end = pod["status"]["initContainerStatuses"][0]["state"]["terminated"];
  end["reason"] = "ContainerStatusUnknown";
  EXPECT_FALSE(ReadPod(pod).failed_init) << "its node may have lost power";
  end = {{"exitCode", 0}};
  EXPECT_FALSE(ReadPod(pod).failed_init);
}

TEST(ReadPodTest, WhatComesAfterAnInitContainerThatFailedNeverStarts) {
  const Json waits = {{"waiting", {{"reason", "PodInitializing"}}}};
  Json pod = Running();
  pod["spec"]["initContainers"].push_back({{"name", "fetch"}});
  pod["spec"]["initContainers"].push_back({{"name", "unpack"}});
  Json& init = pod["status"]["initContainerStatuses"];
  init.push_back({{"name", "fetch"}, {"state", Terminated(3)}});
  init.push_back({{"name", "unpack"}, {"state", waits}});
  pod["status"]["containerStatuses"][0]["state"] = waits;
  pod["status"]["phase"] = "Failed";
  EXPECT_FALSE(ReadPod(pod).proven_dead) << "the sidecar still runs";
  init[0]["state"] = Terminated(0);
  EXPECT_TRUE(ReadPod(pod).proven_dead);
  pod["status"]["phase"] = "Pending";
  EXPECT_FALSE(ReadPod(pod).proven_dead) << "its kubelet has not given it up";
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
  pod["metadata"]["annotations"][api::kDrainAnnotation] = "ScaledDown";
  EXPECT_EQ(ReadPod(pod).drain_reason, "ScaledDown");
}

// As a kubelet writes it whose topology manager finds no GPUs beside each other.
TEST(ReadPodTest, APodThatItsKubeletHasRejected) {
  Json pod = Running();
  pod["status"] = {{"phase", "Failed"}, {"reason", "TopologyAffinityError"}};
  EXPECT_TRUE(ReadPod(pod).rejected);
  EXPECT_EQ(ReadPod(pod).reason, "TopologyAffinityError");
  Json evicted = Running();
  evicted["status"]["phase"] = "Failed";
  evicted["status"]["reason"] = "Evicted";
  EXPECT_FALSE(ReadPod(evicted).rejected) << "its containers had begun";
}

TEST(ReadPodTest, WhoLeavesIsOneQuestionWithOneAnswer) {
  const auto with = [](const char* path, const Json& value) {
    Json pod = Running();
    pod[Json::json_pointer(path)] = value;
    return pod;
  };
  constexpr char kDrain[] = "/metadata/annotations/ringmaster.dev~1drain";
  Json condition = Condition("DisruptionTarget", "True", "EvictionByEvictionAPI");
  Json unexplained = condition;
  unexplained.erase("reason");
  Json evicted = with("/status/phase", "Failed");
  evicted["status"]["reason"] = "Evicted";
  evicted["status"]["conditions"] = {Condition("DisruptionTarget", "True", "TerminationByKubelet")};
  for (const auto& [pod, leaves] :
       {std::pair(Running(), false), std::pair(with(kDrain, ""), false),
        std::pair(with(kDrain, "Requested"), true),
        std::pair(with("/metadata/deletionTimestamp", "2026-01-31T12:00:00Z"), true),
        std::pair(with("/status/conditions", Json::array({condition})), true),
        std::pair(with("/status/conditions", Json::array({unexplained})), true),
        std::pair(evicted, false)}) {
    EXPECT_EQ(ReadPod(pod).leaving(), leaves) << pod;
    EXPECT_EQ(IsLeaving(pod), leaves) << pod;
  }
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
  EXPECT_EQ(ReadPod(pod).accepted_at, api::ParseTime("2026-01-31T11:00:00Z"));
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
  pod["spec"]["schedulingGates"].push_back({{"name", api::kGangGate}});
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

TEST(ReadPodTest, ReadsWhatSpeaksOfLifeAndDeath) {
  const Json pod = Json::parse(R"({"metadata": {"name": "p", "uid": "u",
      "deletionTimestamp": "2026-01-31T12:00:00Z",
      "finalizers": ["ringmaster.dev/proof-of-death"],
      "annotations": {"ringmaster.dev/boot": "b m s", "ringmaster.dev/warned": "NodeCordoned",
                      "ringmaster.dev/warned-since": "2026-01-31T11:59:00Z"}},
    "spec": {"nodeName": "gpu-a", "containers": [{"name": "worker"}]},
    "status": {"phase": "Running", "startTime": "2026-01-31T11:00:00Z"}})");
  planner::PodFacts facts = ReadPod(pod);
  EXPECT_TRUE(facts.has_finalizer && facts.deleting && facts.accepted);
  EXPECT_EQ(facts.delete_at, api::ParseTime("2026-01-31T12:00:00Z"));
  EXPECT_EQ(facts.boot, "b m s");
  EXPECT_EQ(facts.warned, "NodeCordoned");
  EXPECT_EQ(facts.warned_since, api::ParseTime("2026-01-31T11:59:00Z"));
  EXPECT_FALSE(facts.proven_dead);
  const planner::NodeFacts node{.name = "gpu-a", .boot_id = "c", .machine = "m s"};
  Prove(&facts, {.node = &node});
  EXPECT_TRUE(facts.proven_dead && facts.ended());
  EXPECT_EQ(facts.reason, "NodeLost") << "nothing in it has failed";
}

TEST(ReadPodTest, AnExitThatNobodySawIsTheNodesAndNotTheScripts) {
  planner::PodFacts facts = ReadPod(Json::parse(R"({"metadata": {"name": "p", "uid": "u"},
    "spec": {"nodeName": "gpu-a", "containers": [{"name": "worker"}]},
    "status": {"phase": "Failed", "containerStatuses": [{"name": "worker", "state":
      {"terminated": {"exitCode": 255, "reason": "Unknown"}}}]}})"));
  EXPECT_FALSE(facts.exit_code.has_value());
  EXPECT_EQ(facts.reason, "NodeLost");
  EXPECT_TRUE(facts.ended());
}

}  // namespace
}  // namespace ringmaster::controllers
