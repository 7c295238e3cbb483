// A machine as a node of an API server elsewhere: its Node object, the kubelet of its pods, and
// what they print. Pods go on while the API server is away.
//
// Thread rule: Start and Await from one thread, RequestStop from any.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/kubelet/kubelet.h"
#include "operator/kubelet/log_shipper.h"
#include "operator/kubelet/parent_death_watchdog.h"
#include "operator/runtime/informer.h"

namespace ringmaster::kubelet {

struct NodeOptions {
  std::string name, address;
  int pods = 1000;                // at a time
  std::filesystem::path run_dir;  // 0700, exists
  std::filesystem::path bin_dir;
  std::vector<std::string> environment;  // NAME=value, of its pods
  // So long without an API server, it ends its pods; without pods it ends sooner.
  std::chrono::seconds abandon_after{3600};
  // A process of this name was on this machine before and has died: its Node object, if it is
  // there, is taken over, and its pods have ended (lost_pods.h).
  bool again = false;
};

enum class NodeEnd { kReleased, kSignal, kAbandoned };

struct NodeResult {
  NodeEnd end;
  bool logs_sent;  // all that containers have printed; else it lies on this machine alone
};

class NodeProcess {
 public:
  // Returns when the API server knows the node; the error says why it doesn't.
  static kube::Result<std::unique_ptr<NodeProcess>> Start(const NodeOptions& options,
                                                          std::shared_ptr<kube::KubeApi> api);
  ~NodeProcess();

  // Until its Node object is deleted, RequestStop, or nobody has been there for long. Its pods have
  // ended then, and all that can be told is told.
  NodeResult Await(std::chrono::milliseconds grace);
  void RequestStop();

 private:
  NodeProcess(const NodeOptions& options, std::shared_ptr<kube::KubeApi> api);
  kube::Result<void> Register();
  kube::Result<void> RegisterAgain(const kube::Json& node);
  void OnNode(const kube::Json& node, bool deleted);
  bool Beat();
  // Nobody has answered for so long that nobody will.
  bool IsAbandoned(std::chrono::steady_clock::time_point last_contact);
  NodeEnd AwaitEnd();

  const NodeOptions options_;
  const std::shared_ptr<kube::KubeApi> api_;
  const std::string mark_;
  std::unique_ptr<ParentDeathWatchdog> watchdog_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<LogShipper> shipper_;
  std::unique_ptr<runtime::Informer> nodes_;

  sync::Mutex mu_;
  sync::CondVar changed_;
  bool released_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;
};

}  // namespace ringmaster::kubelet
