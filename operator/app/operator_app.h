// The operator: controllers over a KubeApi and the gRPC service that sidecars attend. The same
// class runs in a cluster's Deployment and inside `ringmaster run`.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

struct OperatorOptions {
  std::string listen = "0.0.0.0:0";  // gRPC: host:port, or unix:/path
  std::string sidecar_target;  // what sidecars dial (RINGMASTER_OPERATOR); empty: `listen` as bound
  std::string sidecar_image = "ringmaster.dev/sidecar:latest";
  std::string watch_namespace;  // empty: all
  int workers = 2;              // reconciles at a time
  // Pods wait with a scheduling gate until minReplicas of a job fit together. Reads all nodes and
  // pods of the cluster.
  bool gang_admission = false;
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
