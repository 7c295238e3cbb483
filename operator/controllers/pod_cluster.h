// Adds what a worker pod needs on a real cluster and not on the local one: the user of our
// containers, fixed ports, probes, resources, a DNS name, and the job's certificate. Values that
// the user's template sets for the pod and its own containers are kept. Pure functions on JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/controllers/pod_options.h"

namespace ringmaster::controllers {

// A pod on the host's network uses free ports instead, because several may be on one node.
inline constexpr int kRendezvousPort = 9401;
inline constexpr int kHeartbeatPort = 9402;
inline constexpr int kHttpPort = 9403;
inline constexpr char kHttpPortName[] = "metrics";

// The user id of our own containers: not root, and whatever user the template names for the pod.
inline constexpr int kSidecarUser = 65532;

inline constexpr char kTlsVolume[] = "ringmaster-tls";

// Sets the annotation by which `kubectl logs POD` chooses the container, and the prometheus.io/*
// annotations for a Prometheus that finds pods by them. The latter are omitted if the template has
// any with that prefix, and on the host's network, where the port is unknown in advance.
void AnnotateForCluster(const nlohmann::json& spec, nlohmann::json* metadata);

// `spec` is that of the pod, with our two containers in it.
void FitForCluster(const api::HorovodJob& job, const std::string& pod_name,
                   const PodOptions& options, nlohmann::json* spec);

}  // namespace ringmaster::controllers
