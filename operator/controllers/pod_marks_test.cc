#include "operator/controllers/pod_marks.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/controllers/node_facts.h"
#include "operator/controllers/pod_builder.h"
#include "operator/planner/disruption.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

TEST(PodMarksTest, TheFinalizerComesBesideThoseThatAreThere) {
  Json pod = Json::parse(R"({"metadata": {"finalizers": ["example.com/mine"]}})");
  EXPECT_FALSE(HasFinalizer(pod));
  AddFinalizer(pod);
  EXPECT_TRUE(HasFinalizer(pod));
  EXPECT_EQ(pod["metadata"]["finalizers"].size(), 2u);
}

TEST(PodMarksTest, NodesToAvoidAreAPreferenceBesideTheUsersOwn) {
  Json pod = Json::parse(R"({"spec": {"affinity": {"podAffinity": {"x": 1}, "nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}}}})");
  AvoidNodes(pod, {"gpu-a", "gpu-b"});
  const Json& affinity = pod["spec"]["affinity"];
  EXPECT_EQ(affinity["podAffinity"]["x"], 1);
  const Json& terms = affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[1], Json::parse(R"({"weight": 100, "preference": {"matchFields": [
      {"key": "metadata.name", "operator": "NotIn", "values": ["gpu-a"]},
      {"key": "metadata.name", "operator": "NotIn", "values": ["gpu-b"]}]}})"));
  Json plain = Json::parse(R"({"spec": {}})");
  AvoidNodes(plain, {});
  EXPECT_FALSE(plain["spec"].contains("affinity"));
}

Json NotOn(const std::string& node) {
  return {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}};
}

TEST(PodMarksTest, NodesToKeepOffAreRefusedByEachOfTheUsersTerms) {
  Json pod = Json::parse(R"({"spec": {"affinity": {"nodeAffinity": {
      "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-c"]}]}]}}}}})");
  KeepOffNodes(pod, {"gpu-a", "gpu-b"});
  const Json& terms = pod["spec"]["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0]["matchExpressions"].size(), 1u);
  EXPECT_EQ(terms[0]["matchFields"], Json::array({NotOn("gpu-a"), NotOn("gpu-b")}));
  EXPECT_EQ(terms[1]["matchFields"].size(), 3u);
  EXPECT_EQ(terms[1]["matchFields"][2], NotOn("gpu-b"));
}

TEST(PodMarksTest, WhoHasNoTermsGetsOne) {
  Json pod = Json::parse(R"({"spec": {}})");
  KeepOffNodes(pod, {});
  EXPECT_FALSE(pod["spec"].contains("affinity"));
  KeepOffNodes(pod, {"gpu-a"});
  EXPECT_EQ(pod["spec"]["affinity"],
            Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
              {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "NotIn", "values": ["gpu-a"]}]}]}}})"));
}

TEST(PodMarksTest, WhatIsWrittenOfAnnouncedEndsIsReadAgain) {
  Json pod = Json::parse(R"({"metadata": {"annotations": {"team": "a"}}})");
  WriteAnnounced(pod, {});
  EXPECT_EQ(pod["metadata"]["annotations"].size(), 1u);
  const std::map<std::string, std::string> announced = {{"gpu-a", "NodeCordoned"}};
  WriteAnnounced(pod, announced);
  EXPECT_EQ(pod["metadata"]["annotations"]["team"], "a");
  EXPECT_EQ(ReadPod(pod).announced, announced);
  DropOperatorsMarks(pod);
  EXPECT_TRUE(ReadPod(pod).announced.empty());
}

TEST(PodMarksTest, NonsenseAnnouncesNothing) {
  for (const char* text : {"", "{", "3", "[\"gpu-a\"]", "{\"gpu-a\": 3}"}) {
    const Json pod = {{"metadata", {{"annotations", {{planner::kAnnouncedAnnotation, text}}}}}};
    EXPECT_TRUE(ReadPod(pod).announced.empty()) << text;
  }
}

TEST(PodMarksTest, ATemplateCannotSpeakForTheOperator) {
  Json pod = Json::parse(R"({"metadata": {"annotations": {"team": "a",
      "ringmaster.dev/local-working-dir": "/here"}}})");
  for (const char* mark :
       {"drain", "drain-since", "http", "boot", "proven-dead", "held", "warned", "warned-since"}) {
    pod["metadata"]["annotations"][std::string("ringmaster.dev/") + mark] = "so it says";
  }
  DropOperatorsMarks(pod);
  EXPECT_EQ(pod["metadata"]["annotations"],
            Json({{"team", "a"}, {"ringmaster.dev/local-working-dir", "/here"}}));
  Json plain = Json::parse(R"({"metadata": {}})");
  DropOperatorsMarks(plain);
  EXPECT_EQ(plain, Json::parse(R"({"metadata": {}})"));
}

TEST(ReadNodeTest, ReadsWhatConcernsPodsOnIt) {
  const planner::NodeFacts node = ReadNode(Json::parse(R"({"metadata": {"name": "gpu-a"},
    "spec": {"unschedulable": true, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
    "status": {"conditions": [{"type": "MemoryPressure", "status": "False"},
                              {"type": "Ready", "status": "True"}],
               "nodeInfo": {"bootID": "b", "machineID": "m", "systemUUID": "s"}}})"));
  EXPECT_EQ(node, (planner::NodeFacts{.name = "gpu-a",
                                      .ready = true,
                                      .unschedulable = true,
                                      .boot_id = "b",
                                      .machine = "m s",
                                      .taints = {{"k", "NoExecute", "v"}}}));
  EXPECT_EQ(ReadNode(Json(3)), (planner::NodeFacts{.machine = " "})) << "nonsense";
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
