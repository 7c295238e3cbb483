// The clusters that the conformance suite runs against.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/kubeconfig.h"

namespace ringmaster::local::testing {

// One test's cluster: an API and a namespace of its own.
class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual kube::KubeApi& api() = 0;
  virtual std::string ns() { return "default"; }
  // How to reach its REST API; nullopt: it has none.
  virtual std::optional<kube::ClientConfig> rest() { return std::nullopt; }
};

struct Backend {
  std::string name;
  std::function<std::unique_ptr<Cluster>()> start;
};

// Empty: the in-memory API, and the REST client with the embedded server. Else the cluster of that
// kubeconfig.
std::vector<Backend> Backends(const std::string& kubeconfig);

}  // namespace ringmaster::local::testing
