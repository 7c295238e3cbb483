// The API servers that tests of clients and controllers run against: the store, the embedded server
// over it, a real one. The same tests pass on all of them, so that the embedded one can't drift.
//
//   class FooTest : public local::testing::OnEveryServer { ... };
//   TEST_P(FooTest, DoesWhatItSays) { ... }
//   RM_ON_EVERY_SERVER(FooTest);
//
// Which: the first two; or, where $KUBE_CONFORMANCE_KUBECONFIG names a cluster, that one. What a
// test makes goes into its own namespace, and nodes are named by Cluster::NodeName: others run
// their tests on the same server.
//
// Thread rule: one test's thread, but for what a test says.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/kube/kubeconfig.h"

namespace ringmaster::local::testing {

// One test's cluster: an API and a namespace of its own, and nothing in it that schedules or runs
// pods.
class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual std::shared_ptr<kube::KubeApi> api() = 0;
  virtual std::string ns() { return "default"; }
  // How to reach its REST API; nullopt: it has none.
  virtual std::optional<kube::ClientConfig> rest() { return std::nullopt; }
  // As a scheduler does; any thread. False: there is no such pod, or it has a node.
  virtual bool Bind(const std::string& pod, const std::string& node) = 0;
  // Nodes are in no namespace; those of this name go with the cluster.
  std::string NodeName(const std::string& node) { return ns() + "." + node; }
};

struct Backend {
  std::string name;  // "InMemory", "Embedded", "Real"
  std::function<std::unique_ptr<Cluster>()> start;
};
std::vector<Backend> Backends();
// Those that speak HTTP.
std::vector<Backend> RestBackends();
inline std::string NameOf(const ::testing::TestParamInfo<Backend>& info) { return info.param.name; }

class OnEveryServer : public ::testing::TestWithParam<Backend> {
 protected:
  // Whoever overrides it returns when this has failed.
  void SetUp() override {
    cluster_ = GetParam().start();
    ASSERT_NE(cluster_, nullptr);
    ns_ = cluster_->ns();
    api_ = cluster_->api();
  }

  std::unique_ptr<Cluster> cluster_;
  std::shared_ptr<kube::KubeApi> api_;
  std::string ns_;
};

#define RM_ON_EVERY_SERVER(suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Api, suite,                                                    \
                           ::testing::ValuesIn(::ringmaster::local::testing::Backends()), \
                           ::ringmaster::local::testing::NameOf)

}  // namespace ringmaster::local::testing
