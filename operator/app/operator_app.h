// The operator: controllers over a KubeApi and the gRPC service that sidecars connect to. The same
// class runs in a cluster's Deployment and inside `ringmaster run`.
//
// Thread rule: Start, Run and Stop from one thread; the others from any, while it lives.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

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
  std::string sidecar_target;  // what sidecars dial (RINGMASTER_OPERATOR); empty: `listen` as bound
  std::string sidecar_image = "ringmaster.dev/sidecar:latest";
  std::string sidecar_log_format;  // empty: text
  std::string ring_key_file;       // of all jobs, on this machine; empty: none, or in their Secrets
  // Of all jobs, in their Secrets; empty: each job has one of its own, or that of the file.
  std::string ring_key;
  bool host_network = false;                  // see controllers::PodOptions
  std::vector<std::string> watch_namespaces;  // empty: all
  int workers = 2;                            // reconciles at a time
  // Pods wait with a scheduling gate until minReplicas of a job fit together. Reads all nodes and
  // pods of the cluster.
  bool gang_admission = false;
  // Where the API server serves PodGroups, jobs have them instead of our gates.
  bool pod_groups = false;
  bool kueue = false;  // jobs may name a queue of Kueue
  // Which jobs an autoscaler hears of, and how long nodes take: see
  // controllers::JobControllerOptions.
  scheduler::NodeCallRules node_calls;
  std::chrono::seconds nodes_within{900};
  std::string instance = "ringmaster-operator";  // the reporting instance of events
  std::chrono::milliseconds sync_timeout{60'000};
  controllers::Metrics* metrics = nullptr;  // may be null; else it outlives the app
  // Keys of taints that announce the end of a node; empty: the usual ones.
  std::vector<std::string> disruption_taints;
  bool trust_node_deletion = false;       // see controllers::JobControllerOptions
  std::string sidecar_image_pull_policy;  // empty: Kubernetes' default
  kube::Json sidecar_resources = controllers::DefaultSidecarResources();
  // Mutual TLS with the sidecars, by an authority in the Secret ringmaster-ca of this namespace.
  bool tls = true;
  std::string operator_namespace;
  bool network_policy = true;     // one for each job
  std::string metrics_namespace;  // who may read sidecars' metrics; empty: everybody
};

// Where `listen` (or what sidecars dial) is a unix socket or a loopback address, pods are processes
// of this machine: no TLS, no fixed ports, no objects beside the pods.
bool IsLocal(const OperatorOptions& options);

class OperatorApp {
 public:
  // Create and Run.
  static kube::Result<std::unique_ptr<OperatorApp>> Start(std::shared_ptr<kube::KubeApi> api,
                                                          const OperatorOptions& options);
  static std::unique_ptr<OperatorApp> Create(std::shared_ptr<kube::KubeApi> api,
                                             const OperatorOptions& options);
  virtual ~OperatorApp() = default;

  // Returns when the service listens and the caches are synced; an error if that fails or `stop` is
  // requested before.
  virtual kube::Result<void> Run(std::stop_token stop) = 0;
  // Ends what is being reconciled, then tells the sidecars.
  virtual void Stop() = 0;

  // For people: what is missing before it does its work, and what hangs. Empty: nothing.
  virtual std::vector<std::string> NotReady() const = 0;
  virtual std::vector<std::string> NotAlive() const = 0;
  virtual OperatorSample Sample() const = 0;
};

}  // namespace ringmaster::app
