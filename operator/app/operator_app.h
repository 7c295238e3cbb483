// The operator: controllers over a KubeApi, and the gRPC service that sidecars connect to. The same
// class runs in a cluster's Deployment and inside `ringmaster run`.
//
// Thread rule: Start, Run and Stop from one thread; the other methods from any thread during its
// life.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/api/sidecar_image.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/scheduler/node_calls.h"

namespace ringmaster::controllers {
class Metrics;
}

namespace ringmaster::app {

struct OperatorSample;

struct OperatorOptions {
  std::string listen = "0.0.0.0:0";  // gRPC: host:port, or unix:/path
  // Address for sidecars (RINGMASTER_OPERATOR); empty: `listen` as bound.
  std::string sidecar_target;
  std::string sidecar_image = api::kDefaultSidecarImage;
  std::string sidecar_log_format;  // empty: text
  std::string ring_key_file;  // one for all jobs, on this machine; empty: none, or in their Secrets
  // One for all jobs, in their Secrets; empty: each job has its own, or that of the file.
  std::string ring_key;
  bool host_network = false;                  // see controllers::PodOptions
  std::vector<std::string> watch_namespaces;  // empty: all
  int workers = 2;                            // concurrent reconciles
  // No pod is created before minReplicas of its job fit together. This reads all nodes
  // and pods of the cluster.
  bool gang_admission = false;
  // If the API server serves PodGroups, jobs have them instead of our admission.
  bool pod_groups = false;
  bool kueue = false;  // jobs may name a Kueue queue
  // Which jobs call for an autoscaler's nodes, and how long nodes may take: see
  // controllers::JobControllerOptions.
  scheduler::NodeCallRules node_calls;
  std::chrono::seconds nodes_within{900};
  // If the API server serves ProvisioningRequests, jobs call by them, of this class; empty: never.
  std::string provisioning_class;
  std::string instance = "ringmaster-operator";  // reporting instance of events
  std::chrono::milliseconds sync_timeout{60'000};
  controllers::Metrics* metrics = nullptr;  // may be null; else it outlives the app
  // Keys of taints that announce the end of a node; empty: the default ones.
  std::vector<std::string> disruption_taints;
  bool trust_node_deletion = false;       // see controllers::JobControllerOptions
  std::string sidecar_image_pull_policy;  // empty: Kubernetes' default
  kube::Json sidecar_resources = controllers::DefaultSidecarResources();
  // Mutual TLS with the sidecars; the Secret ringmaster-ca of the operator's namespace has the
  // authority.
  bool tls = true;
  std::string operator_namespace;
  bool network_policy = true;     // one for each job
  std::string metrics_namespace;  // namespace that may read sidecars' metrics; empty: all may
};

// If `listen` (or the sidecars' target) is a unix socket or a loopback address, pods are processes
// of this machine: no TLS, no fixed ports, no objects beside the pods.
bool IsLocal(const OperatorOptions& options);

class OperatorApp {
 public:
  // Calls Create and then Run.
  static kube::Result<std::unique_ptr<OperatorApp>> Start(std::shared_ptr<kube::KubeApi> api,
                                                          const OperatorOptions& options);
  static std::unique_ptr<OperatorApp> Create(std::shared_ptr<kube::KubeApi> api,
                                             const OperatorOptions& options);
  virtual ~OperatorApp() = default;

  // Returns when the service listens and the caches are synced; fails if that fails, or if `stop`
  // is requested before.
  virtual kube::Result<void> Run(std::stop_token stop) = 0;
  // Finishes the reconciles in progress, then tells the sidecars.
  virtual void Stop() = 0;
  // Tells the sidecars of all jobs that all pods leave. For a run that ends: call it before Stop.
  virtual void Dismiss() = 0;

  // For people: what is missing before the operator works, and what hangs. Empty: nothing.
  virtual std::vector<std::string> NotReady() const = 0;
  virtual std::vector<std::string> NotAlive() const = 0;
  virtual OperatorSample Sample() const = 0;
};

}  // namespace ringmaster::app
