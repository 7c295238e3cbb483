#include "operator/app/status_endpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "common/logging/log.h"

namespace ringmaster::app {
namespace {

HttpAnswer ToAnswer(const std::vector<std::string>& wrong) {
  if (wrong.empty()) return {.body = "ok\n"};
  return {.status = 503, .body = fmt::format("{}\n", fmt::join(wrong, "\n"))};
}

HttpAnswer MetricsAnswer(std::string text) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)};
}

}  // namespace

bool StatusEndpoints::Listen(const Addresses& addresses, const Answers& answers,
                             std::shared_ptr<kube::KubeApi> reviews) {
  if (reviews != nullptr) access_review_ = std::make_unique<AccessReview>(std::move(reviews));
  HttpEndpoints::Answers health = {
      {"/healthz", [not_alive = answers.not_alive] { return ToAnswer(not_alive()); }},
      {"/readyz", [not_ready = answers.not_ready] { return ToAnswer(not_ready()); }}};
  HttpEndpoints::Answers metrics = {
      {"/metrics", [text = answers.metrics] { return MetricsAnswer(text()); }}};
  const bool both = addresses.health == addresses.metrics;
  if (both) health.merge(metrics);
  return Open("--health-listen", addresses.health, std::move(health), {}) &&
         (both ||
          Open("--metrics-listen", addresses.metrics, std::move(metrics), ProtectMetrics()));
}

bool StatusEndpoints::Open(const char* flag, const std::string& address,
                           HttpEndpoints::Answers answers, HttpEndpoints::Protection protection) {
  if (address.empty()) return true;
  auto opened = HttpEndpoints::Listen(flag, address, std::move(answers), std::move(protection));
  if (!opened) {
    logging::Error("endpoint not opened error={}", logging::Value(opened.error().message));
    return false;
  }
  logging::Info("endpoint opened flag={} port={}", flag, (*opened)->port());
  endpoints_.push_back(std::move(*opened));
  return true;
}

HttpEndpoints::Protection StatusEndpoints::ProtectMetrics() {
  if (access_review_ == nullptr) return {};
  return {.certificate = HttpEndpoints::OwnCertificate("metrics.operator.ringmaster.dev"),
          .refuse = [this](const http::Request& request) -> std::optional<HttpAnswer> {
            const auto decision = access_review_->MayGet(BearerToken(request), request.path);
            if (decision.status == 200) return std::nullopt;
            return HttpAnswer{.status = decision.status, .body = decision.why + "\n"};
          }};
}

void StatusEndpoints::Stop() {
  for (auto& endpoint : endpoints_) endpoint->Stop();
}

std::vector<int> StatusEndpoints::ports() const {
  std::vector<int> ports;
  for (const auto& endpoint : endpoints_) ports.push_back(endpoint->port());
  return ports;
}

}  // namespace ringmaster::app
