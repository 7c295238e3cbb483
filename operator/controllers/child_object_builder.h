// The objects that a job has beside its pods on a real cluster, each owned by the job: a headless
// Service, a PodDisruptionBudget, a NetworkPolicy and the Secret with the sidecars' certificate.
// Pure functions on JSON; ChildObjects writes the results to the API server.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/tls/certificate.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::controllers {

struct NetworkPolicyOptions {
  bool enabled = true;
  // Pods of this namespace may read the sidecars' metrics; if it is empty, all pods may.
  std::string metrics_namespace;
};

nlohmann::json BuildService(const api::HorovodJob& job);
nlohmann::json BuildDisruptionBudget(const api::HorovodJob& job);
nlohmann::json BuildNetworkPolicy(const api::HorovodJob& job, const NetworkPolicyOptions& options);
nlohmann::json BuildTlsSecret(const api::HorovodJob& job, const std::string& ca_pem,
                              const tls::KeyPair& pair, const std::string& ring_key);

// How long a job's certificate is valid. It is renewed when less than a third of that is left.
inline constexpr std::chrono::hours kJobCertificateLifetime{24 * 90};

// Returns an empty text if the Secret is good for the job at `now`, else why a new certificate is
// needed.
std::string WhyRenew(const nlohmann::json& secret, const api::HorovodJob& job,
                     const std::string& ca_pem, tls::Time now);

// A value of the Secret, decoded; empty if it is absent.
std::string SecretValue(const nlohmann::json& secret, const std::string& key);

// Every field of `wanted` has the same value in `live`, which may have more fields, such as
// defaults from the API server. Lists have to be of the same length.
bool Covers(const nlohmann::json& live, const nlohmann::json& wanted);

}  // namespace ringmaster::controllers
