// What a worker pod needs on a real cluster and not on the local one: the user of our containers,
// fixed ports, probes, resources, a name in DNS, and the job's certificate. What the user's
// template says of the pod and of its own containers stays as it is. Pure functions on JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/controllers/pod_options.h"

namespace ringmaster::controllers {

// A pod of the host's network takes free ports instead: several may be on one node.
inline constexpr int kRendezvousPort = 9401;
inline constexpr int kHeartbeatPort = 9402;
inline constexpr int kHttpPort = 9403;
inline constexpr char kHttpPortName[] = "metrics";

// The user of our own containers: none that the template names, and not root.
inline constexpr int kSidecarUser = 65532;

inline constexpr char kTlsVolume[] = "ringmaster-tls";

// Whose log `kubectl logs POD` shows; and prometheus.io/*, for a Prometheus that finds pods by
// them. Nothing of these where the template says something of that prefix itself, nor on the host's
// network: the port isn't known before it runs.
void AnnotateForCluster(const nlohmann::json& spec, nlohmann::json* metadata);

// `spec`: of the pod, with our two containers in it.
void FitForCluster(const api::HorovodJob& job, const std::string& pod_name,
                   const PodOptions& options, nlohmann::json* spec);

}  // namespace ringmaster::controllers
