#include "operator/local/testing/conformance.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "operator/kube/kube_client.h"
#include "operator/kube/yaml.h"
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
    config.qps = 0;
    config_ = config;
    api_ = std::move(*kube::MakeKubeClient(config));
  }
  kube::KubeApi& api() override { return *api_; }
  std::optional<kube::ClientConfig> rest() override { return config_; }

 private:
  kube::ClientConfig config_;
  std::unique_ptr<RestServer> server_;
  std::unique_ptr<kube::KubeApi> api_;
};

constexpr std::chrono::seconds kPatience{60};

template <class F>
bool Until(F holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

bool Established(const Json& crd) {
  const Json status = crd.value("status", Json::object());
  for (const Json& condition : status.value("conditions", Json::array())) {
    if (condition["type"] == "Established") return condition["status"] == "True";
  }
  return false;
}

// The definition of this tree, so that both servers are asked about the same one. A sentence when
// it can't be had.
std::string InstallCrd(kube::KubeApi& api) {
  auto documents = kube::YamlToJson(kEmbeddedCrd);
  if (!documents || documents->size() != 1) return "the definition of HorovodJob can't be read";
  kube::PatchOptions apply;
  apply.type = kube::PatchType::kApply;
  apply.field_manager = "kube-conformance";
  apply.force = true;
  const std::string name = documents->front()["metadata"]["name"];
  auto applied = api.Patch(kube::CustomResourceDefinitions(), "", name, documents->front(), apply);
  if (!applied) return applied.error().message;
  bool ready = Until([&] {
    auto crd = api.Get(kube::CustomResourceDefinitions(), "", name);
    return crd && Established(*crd) && api.ListAll(kube::HorovodJobs(), "default", {}).has_value();
  });
  return ready ? "" : "the API server doesn't serve " + name;
}

// A namespace of its own on a cluster that somebody else runs.
class RealCluster : public Cluster {
 public:
  RealCluster(kube::ClientConfig config, std::unique_ptr<kube::KubeApi> api)
      : config_(std::move(config)), api_(std::move(api)) {}
  ~RealCluster() override { (void)api_->Delete(kube::Namespaces(), "", ns_, {}); }

  // A sentence when it can't be had.
  std::string Prepare() {
    static const std::string crd = InstallCrd(*api_);  // once for all tests
    if (!crd.empty()) return crd;
    auto ns = api_->Create(kube::Namespaces(), "",
                           {{"metadata", {{"generateName", "kube-conformance-"}}}});
    if (!ns) return ns.error().message;
    ns_ = (*ns)["metadata"]["name"];
    // What controllers put into every namespace: pods are refused before the account is there, and
    // nothing of theirs shall come while a test looks.
    const kube::Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
    bool ready = Until([&] {
      return api_->Get(accounts, ns_, "default") &&
             api_->Get(kube::ConfigMaps(), ns_, "kube-root-ca.crt");
    });
    return ready ? "" : "nobody furnishes namespace " + ns_ + ": is the controller manager up?";
  }
  kube::KubeApi& api() override { return *api_; }
  std::string ns() override { return ns_; }
  std::optional<kube::ClientConfig> rest() override { return config_; }

 private:
  const kube::ClientConfig config_;
  std::unique_ptr<kube::KubeApi> api_;
  std::string ns_;
};

std::unique_ptr<Cluster> StartReal(const std::string& kubeconfig) {
  auto config = kube::LoadKubeconfig(kubeconfig);
  if (!config) {
    ADD_FAILURE() << config.error().message;
    return nullptr;
  }
  config->qps = 0;
  auto api = kube::MakeKubeClient(*config);
  if (!api) {
    ADD_FAILURE() << api.error().message;
    return nullptr;
  }
  auto cluster = std::make_unique<RealCluster>(*config, std::move(*api));
  std::string problem = cluster->Prepare();
  if (problem.empty()) return cluster;
  ADD_FAILURE() << problem;
  return nullptr;
}

}  // namespace

std::vector<Backend> Backends(const std::string& kubeconfig) {
  signal(SIGPIPE, SIG_IGN);  // the client's word to its users
  if (!kubeconfig.empty()) {
    return {{"Real", [kubeconfig] { return StartReal(kubeconfig); }}};
  }
  return {{"InMemory", [] { return std::make_unique<InMemoryCluster>(); }},
          {"Embedded", [] { return std::make_unique<EmbeddedCluster>(); }}};
}

}  // namespace ringmaster::local::testing
