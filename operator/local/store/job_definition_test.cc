#include "operator/local/store/job_definition.h"

#include <gtest/gtest.h>

namespace ringmaster::local {
namespace {

constexpr char kCrd[] = R"(
kind: CustomResourceDefinition
spec:
  names: {}
  versions:
    - name: v1alpha1
      storage: true
      subresources: {scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {n: {type: integer, default: 3, maximum: 9}}}
            status: {type: object, properties: {n: {type: integer}}}
)";

Json Job(Json spec) {
  return {{"metadata",
           {{"name", "j"},
            {"namespace", "default"},
            {"uid", "u"},
            {"resourceVersion", "1"},
            {"creationTimestamp", "2026-01-31T12:00:00Z"}}},
          {"spec", std::move(spec)}};
}

TEST(JobDefinition, UnknownFieldsAreDroppedAndNamed) {
  const JobDefinition definition(kCrd);
  Json job = Job({{"foo", 1}});
  std::vector<std::string> dropped;
  ASSERT_TRUE(definition.Admit(job, "j", nullptr, false, &dropped).has_value());
  EXPECT_EQ(dropped, std::vector<std::string>{"spec.foo"});
  EXPECT_EQ(job["spec"], Json({{"n", 3}}));
  job = Job({{"foo", 1}});
  EXPECT_EQ(definition.Admit(job, "j", nullptr, true, nullptr).error()["code"], 400);
}

TEST(JobDefinition, AScaleReadsAndWritesTheReplicas) {
  const JobDefinition definition(kCrd);
  Json job = Job({{"n", 4}});
  job["status"]["n"] = 2;
  Json scale = definition.ScaleOf(job);
  EXPECT_EQ(scale["spec"]["replicas"], 4);
  EXPECT_EQ(scale["status"]["replicas"], 2);
  scale["spec"]["replicas"] = 7;
  auto scaled = definition.WithScale(job, scale);
  ASSERT_TRUE(scaled.has_value());
  EXPECT_EQ((*scaled)["spec"]["n"], 7);
  scale["spec"]["replicas"] = -1;
  EXPECT_EQ(definition.WithScale(job, scale).error()["code"], 422);
}

TEST(JobDefinition, WithoutADefinitionNothingIsChecked) {
  Json job = Job({{"foo", 1}});
  EXPECT_TRUE(JobDefinition("").Admit(job, "j", nullptr, true, nullptr).has_value());
  EXPECT_EQ(job["spec"], Json({{"foo", 1}}));
  EXPECT_FALSE(CrdSchema::FromYaml("kind: Other").has_value());
}

}  // namespace
}  // namespace ringmaster::local
