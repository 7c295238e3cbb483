// Asks the sidecars of a run for GET /status a few times a second, on a thread of its own: once for
// all changes of the members that a sidecar keeps, and then for the newest.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/inspection/sidecar_status.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::inspection {

// Asks once; nullopt if no sidecar answers, or if it refuses the token. Blocks at most for
// `deadline`. `token` is the job's; empty: it has none. `rebuilds`: at most so many of the newest
// changes of the job's members; nullopt: all that the sidecar keeps.
std::optional<SidecarStatus> FetchStatus(const std::string& address, const std::string& token,
                                         std::chrono::milliseconds deadline,
                                         std::optional<int> rebuilds = std::nullopt);

// A sidecar's answer; nullopt if there is none in time, or if it is longer than `most_bytes`.
std::optional<std::string> FetchText(const std::string& address, const std::string& path,
                                     const std::string& token, std::chrono::milliseconds deadline,
                                     std::size_t most_bytes);

// The history of the training that a sidecar keeps, as JSON (docs/contracts.md, section 5); null if
// there is none.
nlohmann::json FetchHistory(const std::string& address, const std::string& token,
                            std::chrono::milliseconds deadline);

// Whether the API server itself has refused what the functions below ask, as it would for all pods.
// Without its reason in the answer, a pod has refused, or what else listens there.
bool IsRefusalOfTheServer(const kube::Error& error);

// The text by way of the API server, which reaches pods that this machine can't reach.
kube::Result<std::string> FetchTextByProxy(kube::KubeApi* api, const std::string& ns,
                                           const std::string& pod, const std::string& address,
                                           const std::string& path, const std::string& token,
                                           std::chrono::milliseconds deadline);
// The same as JSON, and as the status.
kube::Result<nlohmann::json> FetchByProxy(kube::KubeApi* api, const std::string& ns,
                                          const std::string& pod, const std::string& address,
                                          const std::string& path, const std::string& token);
kube::Result<SidecarStatus> FetchStatusByProxy(kube::KubeApi* api, const std::string& ns,
                                               const std::string& pod, const std::string& address,
                                               const std::string& token);

class StatusPoller {
 public:
  // `token` is for all jobs. `on_status` is called on the poller's thread.
  StatusPoller(std::chrono::milliseconds period, std::string token,
               std::function<void(const std::string& job, const SidecarStatus&)> on_status);
  ~StatusPoller();

  struct Pod {
    std::string job;
    std::string address;  // host:port
  };
  // Sets which sidecars to ask from now on, by pod name.
  void SetPods(std::map<std::string, Pod> pods);

 private:
  void Run(std::stop_token stop);

  const std::chrono::milliseconds period_;
  const std::string token_;
  const std::function<void(const std::string&, const SidecarStatus&)> on_status_;
  sync::Mutex mu_;
  std::map<std::string, Pod> pods_ GUARDED_BY(mu_);
  std::jthread thread_;  // last member: its thread uses the others
};

}  // namespace ringmaster::inspection
