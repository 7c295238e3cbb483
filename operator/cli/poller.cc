#include "operator/cli/poller.h"

#include <httplib.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/sync/pause.h"

namespace ringmaster::cli {
namespace {

// A sidecar of this machine answers in under a millisecond; a stopped one may not hold up the
// others.
constexpr std::chrono::milliseconds kPatience{300};

}  // namespace

std::optional<SidecarStatus> FetchStatus(const std::string& address,
                                         std::chrono::milliseconds deadline) {
  httplib::Client client("http://" + address);
  client.set_connection_timeout(deadline);
  client.set_read_timeout(deadline);
  client.set_write_timeout(deadline);
  auto answer = client.Get("/status");
  if (!answer || answer->status != 200) return std::nullopt;
  auto text = nlohmann::json::parse(answer->body, nullptr, false);
  return ParseSidecarStatus(text);
}

StatusPoller::StatusPoller(std::chrono::milliseconds period,
                           std::function<void(const std::string&, const SidecarStatus&)> on_status)
    : period_(period),
      on_status_(std::move(on_status)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

StatusPoller::~StatusPoller() {
  thread_.request_stop();
  thread_.join();
}

void StatusPoller::SetPods(std::map<std::string, Pod> pods) {
  const sync::MutexLock lock(&mu_);
  pods_ = std::move(pods);
}

void StatusPoller::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::map<std::string, Pod> pods;
    {
      const sync::MutexLock lock(&mu_);
      pods = pods_;
    }
    for (const auto& [name, pod] : pods) {
      if (stop.stop_requested()) return;
      if (auto status = FetchStatus(pod.address, kPatience)) on_status_(pod.job, *status);
    }
    sync::Pause(stop, period_);
  }
}

}  // namespace ringmaster::cli
