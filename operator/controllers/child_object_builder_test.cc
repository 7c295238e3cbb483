#include "operator/controllers/child_object_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/labels.h"
#include "operator/controllers/child_names.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_identity.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

api::HorovodJob Job() {
  api::HorovodJob job;
  job.name = "digits";
  job.ns = "team";
  job.uid = "job-uid";
  job.spec.elastic_policy.min_replicas = 3;
  job.spec.worker.pod_template = Json::parse(
      R"({"spec": {"containers": [{"name": "worker", "image": "i", "command": ["t"]}]}})");
  return job;
}

TEST(JobObjectsTest, EachBelongsToItsJobAndSelectsItsWorkers) {
  const api::HorovodJob job = Job();
  const Json labels = BuildPod(job, 0, {})["metadata"]["labels"];
  const Json service = BuildService(job), budget = BuildDisruptionBudget(job),
             policy = BuildNetworkPolicy(job, {});
  for (const Json* object : {&service, &budget, &policy}) {
    EXPECT_TRUE(IsOwnedBy(*object, "job-uid"));
    EXPECT_EQ((*object)["metadata"]["namespace"], "team");
    EXPECT_EQ((*object)["metadata"]["name"], "digits-workers");
    EXPECT_EQ((*object)["metadata"]["labels"],
              Json::parse(R"({"training.kubeflow.org/job-name": "digits",
                              "ringmaster.dev/job-uid": "job-uid",
                              "app.kubernetes.io/managed-by": "ringmaster"})"));
  }
  EXPECT_EQ(service["spec"]["selector"], Json::parse(R"({"ringmaster.dev/job-uid": "job-uid",
                            "training.kubeflow.org/job-role": "worker"})"));
  // The labels of a pod of an MPIJob with the same name, in the same namespace.
  const Json foreign = {{api::kJobNameLabel, "digits"}, {api::kJobRoleLabel, "worker"}};
  for (const Json& selector :
       {service["spec"]["selector"], budget["spec"]["selector"]["matchLabels"],
        policy["spec"]["podSelector"]["matchLabels"]}) {
    EXPECT_FALSE(Covers(foreign, selector)) << selector;
  }
  EXPECT_TRUE(Covers(labels, service["spec"]["selector"]));
  EXPECT_TRUE(Covers(labels, budget["spec"]["selector"]["matchLabels"]));
  EXPECT_TRUE(Covers(labels, policy["spec"]["podSelector"]["matchLabels"]));
}

TEST(JobObjectsTest, TheServiceIsHeadlessAndNamesPodsThatAreNotReady) {
  const Json spec = BuildService(Job())["spec"];
  EXPECT_EQ(spec["clusterIP"], "None");
  EXPECT_EQ(spec["publishNotReadyAddresses"], true);
  EXPECT_EQ(spec["ports"], Json::parse(R"([{"name": "metrics", "port": 9403, "protocol": "TCP",
                                            "targetPort": 9403}])"));
}

TEST(JobObjectsTest, AServiceOfAJobWhoseNameBeginsWithADigitHasALegalName) {
  EXPECT_EQ(ServiceName("digits"), "digits-workers");
  for (const char* name : {"0d", "3d", "9d"}) {
    EXPECT_EQ(ServiceName(name), "job-" + std::string(name) + "-workers");
  }
  EXPECT_LE(ServiceName(std::string(api::kMaxNameLength, '1')).size(), 63u);
}

TEST(JobObjectsTest, TheBudgetKeepsMinReplicasAndLetsPodsGoThatDoNotTrain) {
  const Json spec = BuildDisruptionBudget(Job())["spec"];
  EXPECT_EQ(spec["minAvailable"], 3);
  EXPECT_EQ(spec["unhealthyPodEvictionPolicy"], "AlwaysAllow");
}

TEST(JobObjectsTest, TheBudgetKeepsTheLeastOfTheAllowedSizesBecauseTheJobStandsBelowIt) {
  api::HorovodJob job = Job();
  job.spec.worker.replicas = 8;
  job.spec.elastic_policy.allowed_sizes = {4, 8};
  EXPECT_EQ(BuildDisruptionBudget(job)["spec"]["minAvailable"], 4);
  job.spec.worker.replicas = 0;
  EXPECT_EQ(BuildDisruptionBudget(job)["spec"]["minAvailable"], 3);
}

TEST(JobObjectsTest, OnlyTheJobsPodsComeInAndMetricsAreForWhomTheOptionsSay) {
  Json spec = BuildNetworkPolicy(Job(), {})["spec"];
  EXPECT_EQ(spec["policyTypes"], Json::array({"Ingress"})) << "egress is open";
  ASSERT_EQ(spec["ingress"].size(), 2u);
  ASSERT_EQ(spec["ingress"][0]["from"].size(), 1u);
  EXPECT_EQ(spec["ingress"][0]["from"][0]["podSelector"], spec["podSelector"]);
  EXPECT_FALSE(spec["ingress"][0].contains("ports")) << "rings take free ports";
  EXPECT_EQ(spec["ingress"][1], Json::parse(R"({"ports": [{"port": 9403, "protocol": "TCP"}]})"));
  spec = BuildNetworkPolicy(Job(), {.metrics_namespace = "monitoring"})["spec"];
  EXPECT_EQ(spec["ingress"][1]["from"], Json::parse(R"([{"namespaceSelector": {"matchLabels":
    {"kubernetes.io/metadata.name": "monitoring"}}}])"));
}

TEST(JobObjectsTest, ACertificateIsRenewedWhenItIsOldOrWrong) {
  const auto now = std::chrono::system_clock::now();
  const auto ca = *tls::MakeAuthority(now, std::chrono::hours(24 * 3650));
  const auto other = *tls::MakeAuthority(now, std::chrono::hours(24 * 3650));
  const auto good = *tls::Issue(ca, {tls::JobName("job-uid")}, now, kJobCertificateLifetime);
  const auto secret = [&](const tls::KeyPair& pair) {
    return BuildTlsSecret(Job(), ca.certificate_pem, pair, "");
  };
  const auto why = [&](const Json& object, tls::Time at) {
    return WhyRenew(object, Job(), ca.certificate_pem, at);
  };
  EXPECT_EQ(secret(good)["metadata"]["name"], "digits-tls");
  EXPECT_EQ(secret(good)["type"], "kubernetes.io/tls");
  EXPECT_EQ(why(secret(good), now), "");
  EXPECT_EQ(why(secret(good), now + std::chrono::hours(24 * 59)), "");
  EXPECT_EQ(why(secret(good), now + std::chrono::hours(24 * 61)), "tls.crt expires before long");
  EXPECT_THAT(why(secret(good), now + std::chrono::hours(24 * 91)), HasSubstr("it expired at"));
  EXPECT_EQ(WhyRenew(secret(good), Job(), other.certificate_pem, now),
            "ca.crt is not the operator's authority");
  const auto foreign = *tls::Issue(other, {tls::JobName("job-uid")}, now, kJobCertificateLifetime);
  EXPECT_THAT(why(secret(foreign), now), HasSubstr("signed by another authority"));
  const auto yours = *tls::Issue(ca, {tls::JobName("your-uid")}, now, kJobCertificateLifetime);
  EXPECT_EQ(why(secret(yours), now), "tls.crt is for another job");
  EXPECT_THAT(why(secret({good.certificate_pem, foreign.key_pem}), now),
              HasSubstr("is not the key"));
  for (const char* nonsense :
       {"{}", R"({"data": 3})", R"({"data": {"tls.crt": "%%%"}})", R"({"data": {"tls.crt": 7}})"}) {
    EXPECT_THAT(why(Json::parse(nonsense), now), HasSubstr("no certificate")) << nonsense;
  }
}

TEST(JobObjectsTest, WhatTheApiServerAddsIsNoDifference) {
  const Json wanted = Json::parse(R"({"a": 1, "list": [{"x": "y"}], "o": {"p": true}})");
  EXPECT_TRUE(Covers(Json::parse(R"({"a": 1, "b": 2, "list": [{"x": "y", "z": 0}],
    "o": {"p": true, "q": null}})"),
                     wanted));
  for (const char* other :
       {R"({"a": 2, "list": [{"x": "y"}], "o": {"p": true}})", R"({"a": 1, "o": {"p": true}})",
        R"({"a": 1, "list": [{"x": "y"}, {}], "o": {"p": true}})", "3",
        R"({"a": 1, "list": {"x": "y"}, "o": {"p": true}})",
        R"({"a": 1, "list": {"0": {"x": "y"}}, "o": {"p": true}})",
        R"({"a": 1, "list": [{"x": "z"}], "o": {"p": true}})"}) {
    EXPECT_FALSE(Covers(Json::parse(other), wanted)) << other;
  }
  EXPECT_FALSE(Covers(Json(3), Json::object()));
}

TEST(JobObjectsTest, ARuleThatAdmitsFewerThanWantedIsADifference) {
  const Json open = BuildNetworkPolicy(Job(), {}),
             narrow = BuildNetworkPolicy(Job(), {.metrics_namespace = "monitor"});
  EXPECT_TRUE(Covers(open, open));
  EXPECT_FALSE(Covers(narrow, open));
  EXPECT_FALSE(Covers(open, narrow));
}

}  // namespace
}  // namespace ringmaster::controllers
