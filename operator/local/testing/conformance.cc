#include "operator/local/testing/conformance.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <utility>

#include "operator/kube/kube_client.h"
#include "operator/kube/random_hex.h"
#include "operator/kube/yaml.h"
#include "operator/local/server/rest_server.h"
#include "operator/local/store/embedded_crd.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "tests/support/until.h"

namespace ringmaster::local::testing {
namespace {

using support::Until;

StoreOptions WithCrd() {
  StoreOptions options;
  options.crd_yaml = kEmbeddedCrd;
  return options;
}

class InMemoryCluster : public Cluster {
 public:
  std::shared_ptr<kube::KubeApi> api() override { return std::make_shared<InMemoryApi>(store_); }
  bool Bind(const std::string& pod, const std::string& node) override {
    return store_->Bind(ns(), pod, node).has_value();
  }

 private:
  const std::shared_ptr<Store> store_ = std::make_shared<Store>(WithCrd());
};

class EmbeddedCluster : public Cluster {
 public:
  EmbeddedCluster() {
    RestServerOptions options;
    options.tls = *MakeTlsMaterial();
    options.token = kube::RandomHex(16);
    options.crd_yaml = kEmbeddedCrd;
    config_.host = "127.0.0.1";
    config_.ca_pem = options.tls.ca_pem;
    config_.token = options.token;
    config_.qps = 0;
    server_ = std::move(*RestServer::Start(std::move(options), store_));
    config_.port = server_->port();
    api_ = std::move(*kube::MakeKubeClient(config_));
  }
  std::shared_ptr<kube::KubeApi> api() override { return api_; }
  std::optional<kube::ClientConfig> rest() override { return config_; }
  bool Bind(const std::string& pod, const std::string& node) override {
    return store_->Bind(ns(), pod, node).has_value();
  }

 private:
  const std::shared_ptr<Store> store_ = std::make_shared<Store>(WithCrd());
  kube::ClientConfig config_;
  std::unique_ptr<RestServer> server_;
  std::shared_ptr<kube::KubeApi> api_;
};

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
  kube::Result<Json> applied;
  // Other programs install the same one, perhaps at this moment.
  const auto settled = [&] {
    applied = api.Patch(kube::CustomResourceDefinitions(), "", name, documents->front(), apply);
    return applied || (applied.error().code != kube::ErrorCode::kConflict &&
                       applied.error().code != kube::ErrorCode::kAlreadyExists);
  };
  (void)Until(settled);
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
  RealCluster(kube::ClientConfig config, std::shared_ptr<kube::KubeApi> api)
      : config_(std::move(config)), api_(std::move(api)) {}
  ~RealCluster() override {
    if (ns_.empty()) return;
    RemovePods();
    (void)api_->Delete(kube::Namespaces(), "", ns_, {});
    const auto nodes = api_->ListAll(kube::Nodes(), "", {});
    if (!nodes) return;
    for (const Json& node : nodes->items) {
      const std::string name = node["metadata"]["name"];
      if (name.starts_with(NodeName(""))) (void)api_->Delete(kube::Nodes(), "", name, {});
    }
  }

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
  std::shared_ptr<kube::KubeApi> api() override { return api_; }
  std::string ns() override { return ns_; }
  std::optional<kube::ClientConfig> rest() override { return config_; }
  bool Bind(const std::string& pod, const std::string& node) override {
    const kube::Resource bindings{"", "v1", "bindings", "Binding", true};
    return api_
        ->Create(bindings, ns_,
                 {{"apiVersion", "v1"},
                  {"kind", "Binding"},
                  {"metadata", {{"name", pod}}},
                  {"target", {{"kind", "Node"}, {"name", node}}}})
        .has_value();
  }

 private:
  // Nobody runs them, so nobody would end them; and whoever could take their finalizers off has
  // gone with the test.
  void RemovePods() {
    const auto pods = api_->ListAll(kube::Pods(), ns_, {});
    if (!pods) return;
    for (const Json& pod : pods->items) {
      const std::string name = pod["metadata"]["name"];
      (void)api_->Patch(kube::Pods(), ns_, name, {{"metadata", {{"finalizers", nullptr}}}}, {});
      (void)api_->Delete(kube::Pods(), ns_, name, {.grace_period_seconds = 0});
    }
  }

  const kube::ClientConfig config_;
  const std::shared_ptr<kube::KubeApi> api_;
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

std::vector<Backend> Backends() {
  signal(SIGPIPE, SIG_IGN);  // the client's word to its users
  // gtest makes its parameters before main() could pass any on.
  if (const char* kubeconfig = std::getenv("KUBE_CONFORMANCE_KUBECONFIG")) {
    return {{"Real", [file = std::string(kubeconfig)] { return StartReal(file); }}};
  }
  return {{"InMemory", [] { return std::make_unique<InMemoryCluster>(); }},
          {"Embedded", [] { return std::make_unique<EmbeddedCluster>(); }}};
}

std::vector<Backend> RestBackends() {
  std::vector<Backend> backends = Backends();
  std::erase_if(backends, [](const Backend& backend) { return backend.name == "InMemory"; });
  return backends;
}

}  // namespace ringmaster::local::testing
