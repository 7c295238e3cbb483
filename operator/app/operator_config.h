// What the operator is told, with the defaults; config_parser.h reads it, once, in main().
//
// Plain values.
#pragma once

#include <string>

#include "operator/api/sidecar_image.h"

namespace ringmaster::app {

struct OperatorConfig {
  std::string kubeconfig;
  std::string listen = "0.0.0.0:9443";  // gRPC, for sidecars: host:port or unix:/path
  std::string sidecar_target;           // address for sidecars; empty: `listen`
  std::string sidecar_image = api::kDefaultSidecarImage;
  std::string watch_namespaces;           // separated by commas; empty: all
  std::string sidecar_image_pull_policy;  // empty: Kubernetes' default
  std::string sidecar_resources;          // JSON; empty: the default
  bool tls = true;
  std::string operator_namespace;  // of the certificate authority; empty: $POD_NAMESPACE
  bool network_policy = true;
  std::string metrics_namespace;  // namespace that may read sidecars' metrics; empty: all may
  int workers = 4;
  bool gang_admission = true;
  std::string pod_groups = "Auto";  // or Never
  bool kueue = false;
  std::string autoscaling = "None";  // or Pending, or ProvisioningRequest
  std::string autoscaling_class = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
  int autoscaling_after_seconds = 30;    // a job calls for nodes after waiting for room this long
  int autoscaling_within_seconds = 900;  // nodes have this long to appear
  int autoscaling_jobs = 4;              // so many jobs may wait for nodes at the same time
  std::string disruption_taints;         // keys, separated by commas; empty: the default ones
  bool trust_node_deletion = false;
  bool clear_finalizers = false;  // only remove finalizers, and exit
  std::string health_listen;      // empty: not served
  std::string metrics_listen;     // empty: not served
  bool metrics_secure = false;    // TLS, and only for users whom the API server allows it
  std::string page_listen;        // empty: not served
  bool leader_elect = false;
  std::string leader_election_namespace;  // empty: $POD_NAMESPACE, else "default"
  std::string leader_election_name = "ringmaster-operator";
  int lease_duration_seconds = 15;
  int renew_deadline_seconds = 10;
  int retry_period_seconds = 2;
  int api_server_timeout_seconds = 300;
  double kube_qps = 50;
  int kube_burst = 100;
  std::string log_format = "text";
  std::string log_level = "info";
};

}  // namespace ringmaster::app
