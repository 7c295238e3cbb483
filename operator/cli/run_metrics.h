// `ringmaster run --metrics-listen`: serves the operator's metrics of a run, as on a cluster, and
// the addresses where its sidecars serve theirs.
//
// Thread rule: Listen and Stop from one thread, Connect and of_controllers before that. The
// endpoints answer on a thread of their own.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "operator/app/http_endpoints.h"
#include "operator/app/operator_app.h"
#include "operator/app/operator_metrics.h"
#include "operator/cli/outcome.h"

namespace ringmaster::cli {

class RunMetrics {
 public:
  RunMetrics();

  // A client whose calls are counted. It must not outlive this object.
  Outcome<std::shared_ptr<kube::KubeApi>> Connect(const std::filesystem::path& kubeconfig);
  // For OperatorOptions::metrics.
  controllers::Metrics* of_controllers() { return metrics_.controllers(); }

  // Serves /metrics, and /targets with the addresses of the sidecars in the format of Prometheus'
  // http_sd_configs. `app` must live until Stop().
  Outcome<void> Listen(const std::string& host_port, const app::OperatorApp* app);
  void Stop() { endpoints_.reset(); }
  int port() const { return endpoints_->port(); }

 private:
  app::OperatorMetrics metrics_;
  std::unique_ptr<app::HttpEndpoints> endpoints_;  // null: not serving
};

}  // namespace ringmaster::cli
