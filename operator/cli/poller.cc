#include "operator/cli/poller.h"

#include <httplib.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/parse.h"
#include "common/ring_key/ring_key.h"
#include "common/sync/pause.h"

namespace ringmaster::cli {
namespace {

// A sidecar of this machine answers in under a millisecond; a stopped one may not hold up the
// others.
constexpr std::chrono::milliseconds kPatience{300};

int PortOf(const std::string& address) {
  return std::atoi(address.substr(address.rfind(':') + 1).c_str());
}

}  // namespace

std::optional<SidecarStatus> FetchStatus(const std::string& address, const std::string& token,
                                         std::chrono::milliseconds deadline) {
  httplib::Client client("http://" + address);
  client.set_connection_timeout(deadline);
  client.set_read_timeout(deadline);
  client.set_write_timeout(deadline);
  httplib::Headers headers;
  if (!token.empty()) headers.emplace(ring_key::kTokenHeader, token);
  auto answer = client.Get("/status", headers);
  if (!answer || answer->status != 200) return std::nullopt;
  auto text = fields::ParseOrDiscard(answer->body);
  return ParseSidecarStatus(text);
}

kube::Result<SidecarStatus> FetchStatusByProxy(kube::KubeApi* api, const std::string& ns,
                                               const std::string& pod, const std::string& address,
                                               const std::string& token) {
  kube::PodProxyRequest request{.port = PortOf(address), .path = "/status"};
  if (!token.empty()) request.headers[ring_key::kTokenHeader] = token;
  const auto body = api->PodProxy(ns, pod, request);
  if (!body) return tl::unexpected(body.error());
  if (auto status = ParseSidecarStatus(fields::ParseOrDiscard(*body))) return *status;
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
  while (!stop.stop_requested()) {
    std::map<std::string, Pod> pods;
    {
      const sync::MutexLock lock(&mu_);
      pods = pods_;
    }
    for (const auto& [name, pod] : pods) {
      if (stop.stop_requested()) return;
      if (auto status = FetchStatus(pod.address, token_, kPatience)) on_status_(pod.job, *status);
    }
    sync::Pause(stop, period_);
  }
}

}  // namespace ringmaster::cli
