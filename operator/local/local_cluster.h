// A Kubernetes in one process, for local mode: an API server with the real one's semantics, served
// as REST with TLS and a token, and a kubelet that runs containers as local processes; or, where
// other machines run them, no kubelet: theirs (node_process.h) are clients of the API server.
// Everybody is its client through `kubeconfig()`.
//
// Thread rule: Start and Stop from one thread; containers of its own kubelet die with the process,
// however it ends.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::local {

struct LocalClusterOptions {
  std::filesystem::path run_dir;  // 0700, exists; docs/contracts.md section 4
  std::filesystem::path
      bin_dir;   // built binaries: what the image ringmaster.dev/sidecar means here
  int port = 0;  // of the API server; 0: chosen free
  std::string address = "127.0.0.1";  // of the API server
  // Nodes of this process, whose kubelet it is. 0: nodes are other processes, which join by
  // themselves, and are asked to end by Stop.
  int nodes = 1;
  int cpus = 0;  // allocatable of each node; 0: the machine's, times 64, so that pods without
                 // requests always fit
  // As RestServerOptions::review.
  std::function<nlohmann::json(const std::string& kind, const nlohmann::json& spec)> review;
};

class LocalCluster {
 public:
  // kUnavailable: a port in use, a directory that can't be written, ...: the message names it.
  static kube::Result<std::unique_ptr<LocalCluster>> Start(const LocalClusterOptions& options);
  virtual ~LocalCluster() = default;

  virtual std::filesystem::path kubeconfig() const = 0;

  // SIGKILLs every process of the pod at once, sidecar included, as a lost machine would: no word
  // to anybody. The kubelet then reports the containers as terminated.
  virtual kube::Result<void> KillPod(const std::string& ns, const std::string& pod) = 0;

  // TERM to all containers, KILL after the grace period, returns when no process is left. Nodes of
  // other processes have a little longer.
  virtual void Stop(std::chrono::milliseconds grace) = 0;

  // After Stop: nodes of other processes that have not said that they have ended.
  virtual std::vector<std::string> NodesLeft() const = 0;
};

}  // namespace ringmaster::local
