#include "operator/controllers/node_affinity.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace ringmaster::controllers
