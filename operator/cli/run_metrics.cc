#include "operator/cli/run_metrics.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/cli/kube_failure.h"
#include "operator/kube/kube_client.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

Json Targets(const app::OperatorSample& sample) {
  Json addresses = Json::array();
  for (const runtime::ObjectPtr& stored : sample.pods) {
    const runtime::ObjectPtr pod = stored.WithoutTree();
    const std::string address =
        fields::Text(fields::At(*pod, "/metadata/annotations"), api::kHttpAnnotation);
    if (!address.empty() && fields::TextAt(*pod, "/status/phase") == "Running")
      addresses.push_back(address);
  }
  return Json::array({{{"targets", addresses}, {"labels", Json::object()}}});
}

}  // namespace

RunMetrics::RunMetrics() : metrics_(RINGMASTER_VERSION) {}

Outcome<std::shared_ptr<kube::KubeApi>> RunMetrics::Connect(
    const std::filesystem::path& kubeconfig) {
  auto config = kube::LoadKubeconfig(kubeconfig);
  if (!config) return tl::unexpected(FromKube(config.error()));
  config->on_call = [this](const kube::CallReport& call) { metrics_.ObserveCall(call); };
  auto api = kube::MakeKubeClient(*config);
  if (!api) return tl::unexpected(FromKube(api.error()));
  return std::move(*api);
}

Outcome<void> RunMetrics::Listen(const std::string& host_port, const app::OperatorApp* app) {
  const auto text = [this, app] {
    return app::HttpAnswer{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                           .body = metrics_.Text(app->Sample())};
  };
  const auto targets = [app] {
    return app::HttpAnswer{.content_type = "application/json",
                           .body = Targets(app->Sample()).dump() + "\n"};
  };
  auto opened = app::HttpEndpoints::Listen("--metrics-listen", host_port,
                                           {{"/metrics", text}, {"/targets", targets}});
  if (!opened) return tl::unexpected(FromKube(opened.error()));
  endpoints_ = std::move(*opened);
  return {};
}

}  // namespace ringmaster::cli
