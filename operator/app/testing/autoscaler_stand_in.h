// Replaces cluster-autoscaler in tests: serves ProvisioningRequests of one class, as its
// documentation describes (docs/scheduling.md, "Autoscalers"), and makes no nodes for anything
// else. It acts only when a test calls Step.
//
// Thread rule: one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class AutoscalerStandIn {
 public:
  struct Options {
    std::string class_name;
    std::string resource;  // of which a pod takes one
    int most = 0;          // that it may add
    std::function<void(int count)> add;
  };
  AutoscalerStandIn(kube::KubeApi* api, Options options)
      : api_(api), options_(std::move(options)) {}

  void SetMost(int most) { options_.most = most; }
  // Each request goes one step further: it is accepted; then capacity for all its pods is booked,
  // or it fails; then the booked capacity appears.
  void Step();

  std::vector<kube::Json> Requests() const;
  std::vector<kube::Json> Templates() const;
  // Requests that the real one could not have served.
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  int Wanted(const kube::Json& request);
  void Decide(const kube::Json& request);
  void Set(const kube::Json& request, const std::string& type, const std::string& reason,
           const std::string& message);

  kube::KubeApi* const api_;
  Options options_;
  int added_ = 0;
  int booked_ = 0;  // and yet to appear
  std::vector<std::string> violations_;
};

}  // namespace ringmaster::app
