#include "operator/app/api_clients.h"

#include <chrono>
#include <utility>

#include "common/logging/log.h"
#include "operator/kube/kube_client.h"

namespace ringmaster::app {
namespace {

constexpr std::chrono::milliseconds kStrangersDeadline{3'000};
constexpr ApiClients::Pace kStrangersPace{5, 20};

kube::ClientConfig OfThisProcess(kube::ClientConfig server, const std::string& version,
                                 OperatorMetrics* metrics, std::stop_token abandon) {
  server.user_agent = "ringmaster-operator/" + version;
  server.on_call = [metrics](const kube::CallReport& report) { metrics->ObserveCall(report); };
  server.stop = std::move(abandon);
  return server;
}

kube::ClientConfig AtPace(kube::ClientConfig config, const ApiClients::Pace& pace) {
  config.qps = pace.qps;
  config.burst = pace.burst;
  return config;
}

}  // namespace

ApiClients::ApiClients(kube::ClientConfig server, Pace own, const std::string& version,
                       OperatorMetrics* metrics)
    : server_(OfThisProcess(std::move(server), version, metrics, abandon_.get_token())),
      own_(own) {}

kube::ClientConfig ApiClients::ForOperator() const {
  kube::ClientConfig config = AtPace(server_, own_);
  config.server_may_lift_limit = true;
  return config;
}

kube::ClientConfig ApiClients::ForStrangers() const {
  kube::ClientConfig config = AtPace(server_, kStrangersPace);
  config.server_may_lift_limit = false;
  config.deadline = kStrangersDeadline;
  return config;
}

std::shared_ptr<kube::KubeApi> ApiClients::Connect(const kube::ClientConfig& config) {
  auto made = kube::MakeKubeClient(config);
  if (made) return std::move(*made);
  logging::Error("no client for the API server error={}", logging::Value(made.error().message));
  return nullptr;
}

}  // namespace ringmaster::app
