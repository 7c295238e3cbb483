// ringmaster-operator: reads flags and environment, and runs an OperatorProcess until a signal
// comes. `ringmaster-operator check` looks at an operator that is installed.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string_view>
#include <thread>

#include "common/logging/grpc_log.h"
#include "common/logging/log.h"
#include "operator/app/config_parser.h"
#include "operator/app/operator_process.h"
#include "operator/app/setting_texts.h"
#include "operator/controllers/finalizers.h"
#include "operator/daemon/installation_check.h"
#include "operator/daemon/operator_page.h"
#include "operator/kube/kube_client.h"

// jemalloc reads it, where the program is linked with it: what was freed goes back to the kernel
// also while the operator has nothing to do.
extern "C" const char* malloc_conf;
const char* malloc_conf = "background_thread:true";

namespace {

namespace kube = ringmaster::kube;
using ringmaster::app::OperatorConfig;
using ringmaster::app::OperatorProcess;
using ringmaster::app::ProcessExit;

constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Uses --kubeconfig, else a pod's service account, else $KUBECONFIG or ~/.kube/config.
kube::Result<kube::ClientConfig> LoadClientConfig(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return kube::LoadKubeconfig(kubeconfig);
  const std::string host = Variable("KUBERNETES_SERVICE_HOST");
  if (!host.empty()) {
    return kube::InClusterConfig(kServiceAccount, host, Variable("KUBERNETES_SERVICE_PORT"));
  }
  const std::string from_env = Variable("KUBECONFIG");
  return kube::LoadKubeconfigs(
      kube::SplitPathList(from_env.empty() ? Variable("HOME") + "/.kube/config" : from_env));
}

// The operator's own namespace.
std::string OwnNamespace() {
  if (std::string named = Variable("POD_NAMESPACE"); !named.empty()) return named;
  std::ifstream file(std::string(kServiceAccount) + "/namespace");
  std::string mounted;
  std::getline(file, mounted);
  return mounted;
}

// The first TERM or INT stops the operator in order, the second one at once.
class Signals {
 public:
  // Created before any other thread, because threads inherit the blocked signals.
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }
  void Handle(OperatorProcess* process) {
    std::thread([set = set_, process] {
      int signal = 0;
      sigwait(&set, &signal);
      ringmaster::logging::Info("stopping signal={}", signal);
      process->RequestStop();
      sigwait(&set, &signal);
      ringmaster::logging::Warn("ending at once signal={}", signal);
      ringmaster::logging::Flush();
      _exit(static_cast<int>(ProcessExit::kSecondSignal));
    }).detach();
  }

 private:
  sigset_t set_;
};

int ClearFinalizers(ringmaster::kube::KubeApi& api, std::vector<std::string> namespaces) {
  if (namespaces.empty()) namespaces.emplace_back();  // in all namespaces
  int pods = 0;
  for (const std::string& ns : namespaces) {
    const auto cleared = ringmaster::controllers::ClearFinalizers(api, ns);
    if (!cleared) {
      ringmaster::logging::Error("finalizers not cleared error={}",
                                 ringmaster::logging::Value(cleared.error().message));
      return 1;
    }
    pods += *cleared;
  }
  ringmaster::logging::Info("finalizers cleared pods={}", pods);
  return 0;
}

int Run(const OperatorConfig& config, Signals* signals) {
  const auto logging =
      ringmaster::logging::Begin({.format = config.log_format, .level = config.log_level});
  if (!logging) {
    std::cerr << "ringmaster-operator: " << logging.error() << "\n";
    return static_cast<int>(ProcessExit::kWrongConfig);
  }
  const ringmaster::logging::GrpcLines grpc_lines;
  auto client = LoadClientConfig(config.kubeconfig);
  if (!client) {
    ringmaster::logging::Error("API server not reachable error={}",
                               ringmaster::logging::Value(client.error().message));
    return static_cast<int>(ProcessExit::kNoApi);
  }
  if (config.clear_finalizers) {
    const auto api = ringmaster::kube::MakeKubeClient(*client);
    if (!api) {
      ringmaster::logging::Error("API server not reachable error={}",
                                 ringmaster::logging::Value(api.error().message));
      return static_cast<int>(ProcessExit::kNoApi);
    }
    return ClearFinalizers(**api, ringmaster::app::Names(config.watch_namespaces));
  }
  // It is never destroyed, because the signal thread refers to it.
  auto* process = new OperatorProcess(config, std::move(*client),
                                      {.pod_name = Variable("POD_NAME"),
                                       .pod_uid = Variable("POD_UID"),
                                       .pod_namespace = OwnNamespace(),
                                       .version = RINGMASTER_VERSION},
                                      ringmaster::daemon::OpenOperatorPage);
  signals->Handle(process);
  const ProcessExit end = process->Run();
  ringmaster::logging::Flush();
  // Running destructors would only endanger threads that still use these objects.
  _exit(static_cast<int>(end));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "check") {
    return ringmaster::daemon::RunInstallationCheck(argc - 1, argv + 1);
  }
  const auto config = ringmaster::app::ParseCommandLine(argc, argv);
  if (!config) {
    (config.error().code == 0 ? std::cout : std::cerr) << config.error().text;
    return config.error().code;
  }
  Signals signals;
  return Run(*config, &signals);
}
