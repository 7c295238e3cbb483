#include "operator/controllers/child_object_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "common/ring_key/ring_key.h"
#include "operator/api/labels.h"
#include "operator/controllers/child_names.h"
#include "operator/controllers/pod_cluster.h"
#include "operator/controllers/pod_identity.h"
#include "operator/kube/base64.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

Json Metadata(const api::HorovodJob& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.ns},
          {"labels",
           {{api::kJobNameLabel, job.name},
            {api::kJobUidLabel, job.uid},
            {api::kManagedByLabel, api::kManagedBy}}},
          {"ownerReferences", Json::array({OwnerReference(job.name, job.uid)})}};
}

// Selects by uid, because jobs of other operators (such as MPI Operator's) have pods with the same
// name and role labels.
Json WorkerLabels(const api::HorovodJob& job) {
  return {{api::kJobUidLabel, job.uid}, {api::kJobRoleLabel, api::kWorkerRole}};
}

}  // namespace

Json BuildService(const api::HorovodJob& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", Metadata(job, ServiceName(job.name))},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},  // names must resolve before the job trains
            {"selector", WorkerLabels(job)},
            {"ports", Json::array({{{"name", kHttpPortName},
                                    {"port", kHttpPort},
                                    {"protocol", "TCP"},
                                    {"targetPort", kHttpPort}}})}}}};
}

Json BuildDisruptionBudget(const api::HorovodJob& job) {
  const bool none = job.spec.worker.replicas == 0;
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", Metadata(job, BudgetName(job.name))},
          {"spec",
           {{"minAvailable", none ? job.spec.elastic_policy.min_replicas : job.LeastPods()},
            {"selector", {{"matchLabels", WorkerLabels(job)}}},
            // A pod that doesn't train must not delay a node's drain.
            {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}};
}

Json BuildNetworkPolicy(const api::HorovodJob& job, const NetworkPolicyOptions& options) {
  const Json own_pods = {{"podSelector", {{"matchLabels", WorkerLabels(job)}}}};
  Json metrics = {{"ports", Json::array({{{"port", kHttpPort}, {"protocol", "TCP"}}})}};
  if (!options.metrics_namespace.empty()) {
    metrics["from"] = Json::array(
        {{{"namespaceSelector",
           {{"matchLabels", {{"kubernetes.io/metadata.name", options.metrics_namespace}}}}}}});
  }
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", Metadata(job, PolicyName(job.name))},
          {"spec",
           {{"podSelector", {{"matchLabels", WorkerLabels(job)}}},
            {"policyTypes", {"Ingress"}},
            {"ingress", Json::array({{{"from", Json::array({own_pods})}}, metrics})}}}};
}

Json BuildTlsSecret(const api::HorovodJob& job, const std::string& ca_pem, const tls::KeyPair& pair,
                    const std::string& ring_key) {
  Json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"metadata", Metadata(job, TlsSecretName(job.name))},
                 {"type", "kubernetes.io/tls"},
                 {"data",
                  {{"ca.crt", kube::EncodeBase64(ca_pem)},
                   {"tls.crt", kube::EncodeBase64(pair.certificate_pem)},
                   {"tls.key", kube::EncodeBase64(pair.key_pem)}}}};
  if (!ring_key.empty()) secret["data"][ring_key::kFileName] = kube::EncodeBase64(ring_key);
  return secret;
}

std::string SecretValue(const Json& secret, const std::string& key) {
  return kube::DecodeBase64(fields::Text(fields::Member(secret, "data"), key.c_str())).value_or("");
}

std::string WhyRenew(const Json& secret, const api::HorovodJob& job, const std::string& ca_pem,
                     tls::Time now) {
  const tls::KeyPair pair{SecretValue(secret, "tls.crt"), SecretValue(secret, "tls.key")};
  const auto info = tls::ReadCertificate(pair.certificate_pem);
  if (!info) return "tls.crt: " + info.error();
  if (!tls::KeyFits(pair)) return "tls.key is not the key of tls.crt";
  if (SecretValue(secret, "ca.crt") != ca_pem) return "ca.crt is not the operator's authority";
  if (info->dns_names != std::vector<std::string>{tls::JobName(job.uid)}) {
    return "tls.crt is for another job";
  }
  const std::string why =
      tls::WhyNotTrusted(ca_pem, pair.certificate_pem, "", tls::Role::kServer, now);
  if (!why.empty()) return "tls.crt: " + why;
  if (info->not_after - now < kJobCertificateLifetime / 3) return "tls.crt expires before long";
  return "";
}

bool Covers(const Json& live, const Json& wanted) {
  if (wanted.is_object()) {
    if (!live.is_object()) return false;
    // A policy's rule lets everybody in without this key, which the API server never adds.
    if (live.contains("from") && !wanted.contains("from")) return false;
    for (const auto& [key, value] : wanted.items()) {
      const auto at = live.find(key);
      if (at == live.end() || !Covers(*at, value)) return false;
    }
    return true;
  }
  if (wanted.is_array()) {
    return live.is_array() && std::equal(live.begin(), live.end(), wanted.begin(), wanted.end(),
                                         [](const Json& a, const Json& b) { return Covers(a, b); });
  }
  return live == wanted;
}

}  // namespace ringmaster::controllers
