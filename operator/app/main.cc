// ringmaster-operator: flags, the API client, and OperatorApp until SIGTERM or SIGINT.
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "operator/app/operator_app.h"
#include "operator/controllers/pod_marks.h"
#include "operator/kube/kube_client.h"

namespace {

namespace kube = ringmaster::kube;

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// --kubeconfig, else what a pod has, else $KUBECONFIG or ~/.kube/config.
kube::Result<std::unique_ptr<kube::KubeApi>> Connect(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return kube::ConnectByKubeconfig(kubeconfig);
  const std::string host = Variable("KUBERNETES_SERVICE_HOST");
  if (!host.empty()) {
    const auto config =
        kube::InClusterConfig(kServiceAccount, host, Variable("KUBERNETES_SERVICE_PORT"));
    if (!config) return tl::unexpected(config.error());
    return kube::MakeKubeClient(*config);
  }
  const std::string from_env = Variable("KUBECONFIG");
  return kube::ConnectByKubeconfig(from_env.empty() ? Variable("HOME") + "/.kube/config"
                                                    : from_env);
}

int ClearFinalizers(kube::KubeApi& api, const std::string& ns) {
  const auto cleared = ringmaster::controllers::ClearFinalizers(api, ns);
  if (!cleared) {
    spdlog::error("finalizers not cleared: {}", cleared.error().message);
    return 1;
  }
  spdlog::info("finalizer taken off {} pods", *cleared);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli(
      "Runs HorovodJobs: watches them and their pods, and is the rendezvous of their sidecars.");
  ringmaster::app::OperatorOptions options;
  options.listen = "0.0.0.0:9443";
  std::string kubeconfig;
  cli.add_option("--kubeconfig", kubeconfig,
                 "kubeconfig file (default: the pod's service account, "
                 "else $KUBECONFIG or ~/.kube/config)");
  cli.add_option("--listen", options.listen, "where sidecars attend: host:port or unix:/path")
      ->capture_default_str();
  cli.add_option("--sidecar-target", options.sidecar_target,
                 "what sidecars dial, if it is not --listen (a Service's name and port)");
  cli.add_option("--sidecar-image", options.sidecar_image, "image of sidecar and launcher")
      ->capture_default_str();
  cli.add_option("--namespace", options.watch_namespace, "only this namespace (default: all)");
  cli.add_option("--workers", options.workers, "jobs reconciled at a time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  cli.add_option("--disruption-taints", options.disruption_taints,
                 "keys of taints that announce the end of a node, instead of the usual ones")
      ->delimiter(',');
  cli.add_flag("--trust-node-deletion", options.trust_node_deletion,
               "a node's object is only removed after its instance, so its absence proves that "
               "its pods are dead (true where a cloud's node controller removes it)");
  bool clear_finalizers = false;
  cli.add_flag("--clear-finalizers", clear_finalizers,
               "take our finalizer off all worker pods and exit: for uninstalling");
  CLI11_PARSE(cli, argc, argv);

  // Blocked in every thread from here on; only sigwait below takes them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto api = Connect(kubeconfig);
  if (!api) {
    spdlog::error("{}", api.error().message);
    return 3;
  }
  if (clear_finalizers) return ClearFinalizers(**api, options.watch_namespace);
  auto app = ringmaster::app::OperatorApp::Start(std::move(*api), options);
  if (!app) {
    spdlog::error("{}", app.error().message);
    return 1;
  }
  spdlog::info("operator runs, sidecars attend at {}", options.listen);
  int signal = 0;
  sigwait(&signals, &signal);
  spdlog::info("signal {}: stopping", signal);
  (*app)->Stop();
  return 0;
}
