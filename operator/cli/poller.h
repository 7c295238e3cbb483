// Asks the sidecars of a run for GET /status, a few times a second, on a thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/cli/sidecar_status.h"

namespace ringmaster::cli {

// One answer; nullopt: nobody there, or not a sidecar. Blocks at most `deadline`.
std::optional<SidecarStatus> FetchStatus(const std::string& address,
                                         std::chrono::milliseconds deadline);

class StatusPoller {
 public:
  // `on_status` is called on the poller's thread.
  StatusPoller(std::chrono::milliseconds period,
               std::function<void(const std::string& job, const SidecarStatus&)> on_status);
  ~StatusPoller();

  struct Pod {
    std::string job;
    std::string address;  // host:port
  };
  // Whom to ask from now on, by pod name.
  void SetPods(std::map<std::string, Pod> pods);

 private:
  void Run(std::stop_token stop);

  const std::chrono::milliseconds period_;
  const std::function<void(const std::string&, const SidecarStatus&)> on_status_;
  sync::Mutex mu_;
  std::map<std::string, Pod> pods_ GUARDED_BY(mu_);
  std::jthread thread_;  // last: uses the others
};

}  // namespace ringmaster::cli
