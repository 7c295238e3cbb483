#include "operator/local/testing/conformance.h"

#include <cstdlib>

#include "operator/kube/kube_client.h"
#include "operator/local/embedded_crd.h"
#include "operator/local/in_memory_api.h"
#include "operator/local/rest_server.h"
#include "operator/local/store.h"

namespace ringmaster::local::testing {
namespace {

StoreOptions WithCrd() {
  StoreOptions options;
  options.crd_yaml = kEmbeddedCrd;
  return options;
}

class InMemoryCluster : public Cluster {
 public:
  kube::KubeApi& api() override { return api_; }

 private:
  InMemoryApi api_{std::make_shared<Store>(WithCrd())};
};

class EmbeddedCluster : public Cluster {
 public:
  EmbeddedCluster() {
    RestServerOptions options;
    options.tls = *MakeTlsMaterial();
    options.token = RandomHex(16);
    options.crd_yaml = kEmbeddedCrd;
    kube::ClientConfig config;
    config.host = "127.0.0.1";
    config.ca_pem = options.tls.ca_pem;
    config.token = options.token;
    server_ = std::move(*RestServer::Start(std::move(options), std::make_shared<Store>(WithCrd())));
    config.port = server_->port();
    api_ = std::move(*kube::MakeKubeClient(config));
  }
  kube::KubeApi& api() override { return *api_; }

 private:
  std::unique_ptr<RestServer> server_;
  std::unique_ptr<kube::KubeApi> api_;
};

// A namespace of its own on a cluster that somebody else runs.
class RealCluster : public Cluster {
 public:
  explicit RealCluster(std::unique_ptr<kube::KubeApi> api) : api_(std::move(api)) {
    auto ns = api_->Create(kube::Namespaces(), "",
                           {{"metadata", {{"generateName", "kube-conformance-"}}}});
    if (ns) ns_ = (*ns)["metadata"]["name"];
  }
  ~RealCluster() override { (void)api_->Delete(kube::Namespaces(), "", ns_, {}); }
  kube::KubeApi& api() override { return *api_; }
  std::string ns() override { return ns_; }

 private:
  std::unique_ptr<kube::KubeApi> api_;
  std::string ns_;
};

}  // namespace

std::vector<Backend> Backends(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) {
    return {{"Real", [kubeconfig]() -> std::unique_ptr<Cluster> {
               auto api = kube::ConnectByKubeconfig(kubeconfig);
               return api ? std::make_unique<RealCluster>(std::move(*api)) : nullptr;
             }}};
  }
  return {{"InMemory", [] { return std::make_unique<InMemoryCluster>(); }},
          {"Embedded", [] { return std::make_unique<EmbeddedCluster>(); }}};
}

}  // namespace ringmaster::local::testing
