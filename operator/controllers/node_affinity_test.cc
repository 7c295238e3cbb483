#include "operator/controllers/node_affinity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

TEST(NodeAffinityTest, NodesToAvoidAreAPreferenceBesideTheUsersOwn) {
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

TEST(NodeAffinityTest, NodesToKeepOffAreRefusedByEachOfTheUsersTerms) {
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

TEST(NodeAffinityTest, APodWithoutTermsGetsOne) {
  Json pod = Json::parse(R"({"spec": {}})");
  KeepOffNodes(pod, {});
  EXPECT_FALSE(pod["spec"].contains("affinity"));
  KeepOffNodes(pod, {"gpu-a"});
  EXPECT_EQ(pod["spec"]["affinity"],
            Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
              {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "NotIn", "values": ["gpu-a"]}]}]}}})"));
}

TEST(NodeAffinityTest, ADomainThatIsRequiredIsANodeSelectorAndOneThatIsPreferredIsAWish) {
  Json pod = Json::parse(R"({"spec": {"nodeSelector": {"pool": "gpu"}}})");
  const api::TopologyPolicy required{"example.com/rack", true},
      preferred{"example.com/rack", false};
  PutInDomain(pod, required, "");
  PutInDomain(pod, {}, "b");
  EXPECT_EQ(pod, Json::parse(R"({"spec": {"nodeSelector": {"pool": "gpu"}}})"));
  PutInDomain(pod, required, "b");
  EXPECT_EQ(pod["spec"]["nodeSelector"],
            Json::parse(R"({"pool": "gpu", "example.com/rack": "b"})"));
  EXPECT_EQ(DomainOf(pod["metadata"]["annotations"][api::kTopologyAnnotation], required), "b");

  Json other = Json::parse(R"({"spec": {}})");
  PutInDomain(other, preferred, "b");
  EXPECT_EQ(other["spec"], Json::parse(R"({"affinity": {"nodeAffinity": {
      "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": {
        "matchExpressions": [{"key": "example.com/rack", "operator": "In", "values": ["b"]}]}}]}}})"));
}

TEST(NodeAffinityTest, ADomainOfAnotherLabelIsNone) {
  EXPECT_EQ(DomainOf("example.com/rack=b", {"example.com/rack", true}), "b");
  EXPECT_EQ(DomainOf("example.com/rack=b", {"example.com/ra", true}), "");
  EXPECT_EQ(DomainOf("example.com/rack=b", {}), "");
  EXPECT_EQ(DomainOf("", {"example.com/rack", true}), "");
}

TEST(NodeAffinityTest, WhereNobodyCountsTheNodesThePodsFollowEachOther) {
  Json pod = Json::parse(R"({"spec": {}})");
  KeepTogether(pod, {}, "uid");
  EXPECT_EQ(pod, Json::parse(R"({"spec": {}})"));
  KeepTogether(pod, {"example.com/rack", true}, "uid");
  const Json term = Json::parse(R"({"topologyKey": "example.com/rack",
      "labelSelector": {"matchLabels": {"ringmaster.dev/job-uid": "uid"}}})");
  EXPECT_EQ(pod["spec"]["affinity"]["podAffinity"],
            Json({{"requiredDuringSchedulingIgnoredDuringExecution", Json::array({term})}}));
  Json other = Json::parse(R"({"spec": {}})");
  KeepTogether(other, {"example.com/rack", false}, "uid");
  EXPECT_EQ(other["spec"]["affinity"]["podAffinity"],
            Json({{"preferredDuringSchedulingIgnoredDuringExecution",
                   Json::array({{{"weight", 100}, {"podAffinityTerm", term}}})}}));
}

}  // namespace
}  // namespace ringmaster::controllers
