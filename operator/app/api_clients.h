// Makes the clients by which the process reaches the API server. All of them count into the
// process's metrics and name its version, and their calls can be ended together.
//
// It owns how the server is reached, at which pace, and what ends the calls. Thread rule: every
// method from any thread.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "operator/app/operator_metrics.h"
#include "operator/kube/kube_api.h"
#include "operator/kube/kubeconfig.h"

namespace ringmaster::app {

class ApiClients {
 public:
  // The operator's own calls: how many in a second, and how many at once.
  struct Pace {
    double qps = 50;
    int burst = 100;
  };
  // `metrics` outlives the clients.
  ApiClients(kube::ClientConfig server, Pace own, const std::string& version,
             OperatorMetrics* metrics);

  // For what the operator does by itself.
  kube::ClientConfig ForOperator() const;
  // For calls that anyone can cause who reaches one of our ports. They have a low rate limit of
  // their own, because they must not use up the calls of the controllers.
  kube::ClientConfig ForStrangers() const;
  // Null: no client can be made of this, and the log says why.
  static std::shared_ptr<kube::KubeApi> Connect(const kube::ClientConfig& config);

  // Ends the calls of all clients, those in progress and later ones.
  void Abandon() { abandon_.request_stop(); }

 private:
  std::stop_source abandon_;
  const kube::ClientConfig server_;
  const Pace own_;
};

}  // namespace ringmaster::app
