// The operator: controllers over a KubeApi and the gRPC service that sidecars attend. The same
// class runs in a cluster's Deployment and inside `ringmaster run`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

struct OperatorOptions {
  std::string listen = "0.0.0.0:0";  // gRPC: host:port, or unix:/path
  std::string sidecar_target;  // what sidecars dial (RINGMASTER_OPERATOR); empty: `listen` as bound
  std::string sidecar_image = "ringmaster.dev/sidecar:latest";
  std::string watch_namespace;  // empty: all
  int workers = 2;              // reconciles at a time
  // Keys of taints that announce the end of a node; empty: the usual ones.
  std::vector<std::string> disruption_taints;
  bool trust_node_deletion = false;  // see controllers::JobControllerOptions
};

class OperatorApp {
 public:
  // Returns when the service listens and the caches are synced.
  static kube::Result<std::unique_ptr<OperatorApp>> Start(std::shared_ptr<kube::KubeApi> api,
                                                          const OperatorOptions& options);
  virtual ~OperatorApp() = default;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::app
