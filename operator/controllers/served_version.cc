#include "operator/controllers/served_version.h"

#include "common/logging/log.h"
#include "common/sync/pause.h"

namespace ringmaster::controllers {
namespace {

using Served = std::optional<kube::Resource>;

kube::Result<void> MayList(kube::KubeApi& api, const kube::Resource& version,
                           const std::vector<std::string>& namespaces) {
  for (const std::string& ns : namespaces) {
    const auto listed =
        api.ListAll(version, ns, {.label_selector = "ringmaster.dev/none", .chunk = 1});
    if (!listed) return tl::unexpected(listed.error());
  }
  return {};
}

kube::Result<Served> AskForEach(kube::KubeApi& api, const std::vector<kube::Resource>& versions,
                                const std::vector<std::string>& namespaces) {
  for (const kube::Resource& version : versions) {
    const auto may = MayList(api, version, namespaces);
    if (may) return version;
    if (may.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(may.error());
  }
  return std::nullopt;
}

}  // namespace

Served ServedVersion(kube::KubeApi& api, const std::vector<kube::Resource>& versions,
                     std::vector<std::string> namespaces, const std::stop_token& stop,
                     std::chrono::milliseconds pause) {
  if (namespaces.empty()) namespaces.emplace_back();
  for (int asking = 1;; ++asking) {
    const kube::Result<Served> served = AskForEach(api, versions, namespaces);
    if (served) return *served;
    // A refusal may be temporary, except 403, which is about our rights.
    const bool last = asking >= kAskings || served.error().http_status == 403;
    logging::Warn("{}s support not known asking_again={} error={}", versions.front().kind, !last,
                  logging::Value(served.error().message));
    if (last || stop.stop_requested()) return std::nullopt;
    sync::Pause(stop, pause);
  }
}

}  // namespace ringmaster::controllers
