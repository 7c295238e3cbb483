// What the containers of one pod on the local kubelet share.
//
// Owner and thread: PodRunner; loop thread only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kubelet {

using kube::Json;
using Clock = std::chrono::steady_clock;

struct RunnerOptions {
  std::filesystem::path run_dir;
  std::filesystem::path bin_dir;
  bool server_is_here = false;        // the API server is in this process
  std::string run_mark;               // RINGMASTER_RUN=<id>
  std::string node;                   // whose pods are run; empty: those of every node
  std::string address = "127.0.0.1";  // of the node, and so of its pods
  std::vector<std::string> machine_env;
  std::chrono::milliseconds first_backoff{100};
  std::chrono::milliseconds longest_backoff{10'000};
  std::chrono::milliseconds stable_after{
      30'000};  // a container that ran so long restarts at once again
};

// What the kubelet does for its runners.
class RunnerHost {
 public:
  virtual ~RunnerHost() = default;
  // Calls PodRunner::OnExit when the process ends.
  virtual void WatchProcess(pid_t pid, const std::string& pod_uid) = 0;
  virtual Json Read(const kube::Resource& resource, const std::string& ns,
                    const std::string& name) = 0;
  // Later, on the loop: PodRunner::OnProbe. `where`: host:port and path, or just host:port for a
  // TCP probe.
  virtual void ProbeHttp(const std::string& pod_uid, const std::string& container, int start,
                         const std::string& host_port, const std::string& path,
                         std::chrono::milliseconds timeout) = 0;
};

struct PodContext {
  const RunnerOptions& options;
  RunnerHost& host;
  Json pod;                               // the object as it is now
  std::optional<Clock::time_point> next;  // when there is something to do

  void Due(Clock::time_point when) {
    if (!next || when < *next) next = when;
  }
  std::string uid() const { return pod["metadata"]["uid"]; }
  std::string ns() const { return pod["metadata"]["namespace"]; }
  std::string name() const { return pod["metadata"]["name"]; }
  std::string restart_policy() const { return pod["spec"].value("restartPolicy", "Always"); }
};

}  // namespace ringmaster::kubelet
