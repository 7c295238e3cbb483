// What the operator's settings say of the worker pods that it makes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::controllers {

// The container resources of the sidecar: `{"requests": {...}, "limits": {...}}`.
nlohmann::json DefaultSidecarResources();

struct PodOptions {
  std::string sidecar_image = "ringmaster.dev/sidecar:latest";
  std::string sidecar_target;  // RINGMASTER_OPERATOR; empty: none
  std::string log_format;      // of sidecars; empty: their default
  bool gang_gate = false;      // pods wait for the operator before they look for a node
  bool shield = false;         // autoscalers are told to leave a pod alone until its job trains
  std::string ring_key_file;   // RINGMASTER_RING_KEY_FILE of sidecars; empty: none
  // A real cluster (pod_cluster.h). False: the local one, whose pods are processes of this machine.
  bool cluster = false;
  // All below: on a real cluster, and on the local one where other machines are its nodes.
  bool host_network = false;      // every pod has its node's address, and ports that are free there
  bool tls = true;                // mutual TLS with the certificate in the job's Secret
  std::string image_pull_policy;  // of our containers; empty: Kubernetes' default
  nlohmann::json sidecar_resources = DefaultSidecarResources();
};

inline constexpr char kSidecarContainer[] = "ringmaster-sidecar";
inline constexpr char kInstallContainer[] = "ringmaster-install";

}  // namespace ringmaster::controllers
