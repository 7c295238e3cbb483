// ringmaster-operator: flags, the API client, and OperatorApp until SIGTERM or SIGINT.
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>

#include "operator/app/operator_app.h"
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
  options.gang_admission = true;
  cli.add_option("--gang-admission", options.gang_admission,
                 "pods of a job start together or not at all; false where an autoscaler has to see "
                 "them Pending")
      ->capture_default_str();
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
