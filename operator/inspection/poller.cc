#include "operator/inspection/poller.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/fields/parse.h"
#include "common/http/fetch.h"
#include "common/ring_key/ring_key.h"
#include "common/sync/pause.h"

namespace ringmaster::inspection {
namespace {

// A sidecar on this machine answers in under a millisecond; a stopped one must not delay the
// others.
constexpr std::chrono::milliseconds kPatience{300};
// A status with the view of a job of eight thousand workers and all changes that a sidecar keeps
// has some 2 MB. More would let a strange pod take much of the memory of who asks.
constexpr std::size_t kMostAnswered = 4 << 20;
// More than there are between two questions.
constexpr int kNewRebuilds = 32;

int PortOf(const std::string& address) {
  return std::atoi(address.substr(address.rfind(':') + 1).c_str());
}

constexpr std::chrono::milliseconds kProxyPatience{3000};

}  // namespace

std::optional<std::string> FetchText(const std::string& address, const std::string& path,
                                     const std::string& token, std::chrono::milliseconds deadline,
                                     std::size_t most_bytes) {
  http::FetchOptions options{.deadline = deadline, .most_bytes = most_bytes};
  if (!token.empty()) options.headers.emplace(ring_key::kTokenHeader, token);
  return http::Fetch(address, path, options);
}

std::optional<SidecarStatus> FetchStatus(const std::string& address, const std::string& token,
                                         std::chrono::milliseconds deadline,
                                         std::optional<int> rebuilds) {
  const std::string path =
      rebuilds ? "/status?rebuilds=" + std::to_string(*rebuilds) : std::string("/status");
  const auto text = FetchText(address, path, token, deadline, kMostAnswered);
  if (!text) return std::nullopt;
  // One answer at a time, because many may arrive together, and parsed JSON needs many times the
  // memory of its text.
  static sync::Mutex parses;
  const sync::MutexLock lock(&parses);
  return ParseSidecarStatus(fields::ParseOrDiscard(*text));
}

nlohmann::json FetchHistory(const std::string& address, const std::string& token,
                            std::chrono::milliseconds deadline) {
  const auto text = FetchText(address, "/history", token, deadline, kMostAnswered);
  return text ? fields::ParseOrDiscard(*text) : nlohmann::json();
}

bool IsRefusalOfTheServer(const kube::Error& error) {
  return error.reason == "Forbidden" || error.reason == "Unauthorized";
}

kube::Result<std::string> FetchTextByProxy(kube::KubeApi* api, const std::string& ns,
                                           const std::string& pod, const std::string& address,
                                           const std::string& path, const std::string& token,
                                           std::chrono::milliseconds deadline) {
  kube::PodProxyRequest request{.port = PortOf(address), .path = path, .deadline = deadline};
  if (!token.empty()) request.headers[ring_key::kTokenHeader] = token;
  return api->PodProxy(ns, pod, request);
}

kube::Result<nlohmann::json> FetchByProxy(kube::KubeApi* api, const std::string& ns,
                                          const std::string& pod, const std::string& address,
                                          const std::string& path, const std::string& token) {
  const auto body = FetchTextByProxy(api, ns, pod, address, path, token, kProxyPatience);
  if (!body) return tl::unexpected(body.error());
  return fields::ParseOrDiscard(*body);
}

kube::Result<SidecarStatus> FetchStatusByProxy(kube::KubeApi* api, const std::string& ns,
                                               const std::string& pod, const std::string& address,
                                               const std::string& token) {
  const auto answer = FetchByProxy(api, ns, pod, address, "/status", token);
  if (!answer) return tl::unexpected(answer.error());
  if (auto status = ParseSidecarStatus(*answer)) return *status;
  return tl::unexpected(kube::Error{kube::ErrorCode::kInternal, 200, "",
                                    "what pod " + pod + " answers is no status of a sidecar"});
}

StatusPoller::StatusPoller(std::chrono::milliseconds period, std::string token,
                           std::function<void(const std::string&, const SidecarStatus&)> on_status)
    : period_(period),
      token_(std::move(token)),
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
  std::set<std::string> told_all;  // the addresses of sidecars that have told all that they keep
  while (!stop.stop_requested()) {
    std::map<std::string, Pod> pods;
    {
      const sync::MutexLock lock(&mu_);
      pods = pods_;
    }
    for (const auto& [name, pod] : pods) {
      if (stop.stop_requested()) return;
      const bool told = told_all.erase(pod.address) > 0;
      const auto rebuilds = told ? std::optional(kNewRebuilds) : std::nullopt;
      const auto status = FetchStatus(pod.address, token_, kPatience, rebuilds);
      if (!status) continue;
      told_all.insert(pod.address);
      on_status_(pod.job, *status);
    }
    sync::Pause(stop, period_);
  }
}

}  // namespace ringmaster::inspection
