// Shows the operator's objects to each of the API servers: a server must accept every field, and
// the stored object must still match what was wanted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/testing/job_object.h"
#include "operator/controllers/child_object_builder.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_builder.h"
#include "operator/local/testing/conformance.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class BuiltObjectsTest : public local::testing::OnEveryServer {
 protected:
  // A job with this pod spec in addition to the worker's container.
  api::HorovodJob Job(const Json& pod_spec = Json::object()) {
    Json object = api::testing::JobObject("digits", 4);
    object["metadata"].update(
        {{"namespace", ns_}, {"uid", "d0f5a1f4-3b4c-4f6e-9d0a-2f1f0f5f7a11"}});
    object["spec"]["worker"]["template"]["spec"].update(pod_spec);
    const auto job = api::ParseHorovodJob(object);
    EXPECT_TRUE(job) << api::ToString(job.error());
    return job ? *job : api::HorovodJob{};
  }
  // The object as the server would store it; unknown fields are an error.
  Json Taken(const kube::Resource& resource, const Json& object, const std::string& what) {
    const auto taken =
        api_->CreateWith(resource, ns_, object, {.field_validation = "Strict", .dry_run = true});
    EXPECT_TRUE(taken) << what << ": " << taken.error().message;
    return taken ? *taken : Json::object();
  }
  // ChildObjects corrects changed objects, so a server's defaults must not look like changes.
  void StaysAsBuilt(const kube::Resource& resource, const Json& object) {
    const Json taken = Taken(resource, object, resource.kind);
    EXPECT_TRUE(Covers(taken.value("spec", Json()), object["spec"])) << taken.dump(1);
  }
};

TEST_P(BuiltObjectsTest, PodsOfEveryKind) {
  const std::pair<const char*, Json> specs[] = {
      {"plain", Json::object()},
      {"on the host's network", {{"hostNetwork", true}}},
      {"with a hostname of its own", {{"hostname", "mine"}}},
      {"with a token", {{"automountServiceAccountToken", true}}},
      {"of root", {{"securityContext", {{"runAsUser", 0}, {"fsGroup", 7}}}}},
      {"with the user's volumes and containers", Json::parse(R"({
        "affinity": {"podAffinity": {}}, "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 120,
        "volumes": [{"name": "shm", "persistentVolumeClaim": {"claimName": "c"}}],
        "initContainers": [{"name": "data", "image": "d"}],
        "containers": [
          {"name": "worker", "image": "i", "command": ["t"], "securityContext": {"runAsUser": 0},
           "resources": {"limits": {"nvidia.com/gpu": 1}},
           "volumeMounts": [{"name": "shm", "mountPath": "/data"}],
           "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}},
          {"name": "tensorboard", "image": "tb"}]})")}};
  for (const auto& [what, spec] : specs) {
    for (const bool cluster : {false, true}) {
      PodOptions options;
      options.cluster = cluster;
      options.counted = cluster;
      options.sidecar_target = "ringmaster-operator.ops.svc:9443";
      Json pod = BuildPod(Job(spec), 2, options);
      AddFinalizer(pod);
      AvoidNodes(pod, {"node-1", "node-2"});
      (void)Taken(kube::Pods(), pod, std::string(what) + (cluster ? ", on a cluster" : ", local"));
    }
  }
}

TEST_P(BuiltObjectsTest, ServiceBudgetPolicyAndSecret) {
  const api::HorovodJob job = Job();
  StaysAsBuilt(kube::Services(), BuildService(job));
  StaysAsBuilt(kube::PodDisruptionBudgets(), BuildDisruptionBudget(job));
  StaysAsBuilt(kube::NetworkPolicies(), BuildNetworkPolicy(job, {}));
  StaysAsBuilt(kube::NetworkPolicies(),
               BuildNetworkPolicy(job, {.metrics_namespace = "monitoring"}));
  const auto now = std::chrono::system_clock::now();
  const auto authority = *tls::MakeAuthority(now, std::chrono::hours(24));
  const auto pair = *tls::Issue(authority, {tls::JobName(job.uid)}, now, std::chrono::hours(1));
  const Json secret = BuildTlsSecret(job, authority.certificate_pem, pair, std::string(32, 'k'));
  EXPECT_EQ(Taken(kube::Secrets(), secret, "Secret")["data"], secret["data"]);
}

RM_ON_EVERY_SERVER(BuiltObjectsTest);

}  // namespace
}  // namespace ringmaster::controllers
