// The operator's settings for the worker pods that it creates.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/sidecar_image.h"

namespace ringmaster::controllers {

// The container resources of the sidecar: `{"requests": {...}, "limits": {...}}`.
nlohmann::json DefaultSidecarResources();

struct PodOptions {
  std::string sidecar_image = api::kDefaultSidecarImage;
  std::string sidecar_target;  // RINGMASTER_OPERATOR; empty: not set
  std::string log_format;      // log format of sidecars; empty: their default
  bool counted = false;        // the operator counts where they find room (gang admission)
  bool shield = false;         // autoscalers must not move a pod before its job trains
  std::string ring_key_file;   // RINGMASTER_RING_KEY_FILE of sidecars; empty: not set
  // True on a real cluster (pod_cluster.h), false on the local one, whose pods are processes of
  // this machine.
  bool cluster = false;
  // The following count on a real cluster, and on a local one whose nodes are other machines.
  bool host_network = false;      // pods have their node's address and free ports of it
  bool tls = true;                // mutual TLS with the certificate in the job's Secret
  std::string image_pull_policy;  // of our containers; empty: Kubernetes' default
  nlohmann::json sidecar_resources = DefaultSidecarResources();
};

inline constexpr char kSidecarContainer[] = "ringmaster-sidecar";
inline constexpr char kInstallContainer[] = "ringmaster-install";

}  // namespace ringmaster::controllers
