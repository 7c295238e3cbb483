#include "operator/controllers/finalizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/fields/fields.h"
#include "common/sync/mutex.h"
#include "common/sync/parallel.h"
#include "operator/api/labels.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

// Other clients, mostly the kubelet, write the pod at the same time.
constexpr int kTries = 5;

const Json& Finalizers(const Json& pod) {
  return fields::List(fields::Member(pod, "metadata"), "finalizers");
}

}  // namespace

void AddFinalizer(Json& pod) {
  Json& list = pod["metadata"]["finalizers"];
  if (!list.is_array()) list = Json::array();
  list.push_back(api::kProofFinalizer);
}

bool HasFinalizer(const Json& pod) {
  const Json& list = Finalizers(pod);
  return std::find(list.begin(), list.end(), api::kProofFinalizer) != list.end();
}

kube::Result<void> RemoveFinalizer(kube::KubeApi& api, const Json& pod, bool as_seen) {
  const std::string ns = MetaField(pod, "namespace"), name = MetaField(pod, "name");
  const std::string uid = MetaField(pod, "uid");
  Json live = pod;
  const int tries = as_seen ? 1 : kTries;
  for (int attempt = 0;; ++attempt) {
    if (MetaField(live, "uid") != uid || !HasFinalizer(live)) return {};
    Json rest = Finalizers(live);
    rest.erase(std::remove(rest.begin(), rest.end(), Json(api::kProofFinalizer)), rest.end());
    // A merge patch replaces the whole list, so the version makes sure that the list is the one we
    // read.
    const Json patch = {{"metadata",
                         {{"uid", uid},
                          {"resourceVersion", MetaField(live, "resourceVersion")},
                          {"finalizers", rest}}}};
    const auto patched = api.Patch(kube::Pods(), ns, name, patch, {});
    if (patched || patched.error().code == ErrorCode::kNotFound) return {};
    if (patched.error().code != ErrorCode::kConflict || attempt + 1 == tries) {
      return tl::unexpected(patched.error());
    }
    auto read = api.Get(kube::Pods(), ns, name);
    if (!read && read.error().code == ErrorCode::kNotFound) return {};
    if (!read) return tl::unexpected(read.error());
    live = std::move(*read);
  }
}

kube::Result<int> ClearFinalizers(kube::KubeApi& api, const std::string& ns,
                                  std::size_t calls_at_once) {
  kube::ListOptions options;
  options.label_selector = fmt::format("{}=worker", api::kJobRoleLabel);
  auto pods = api.ListAll(kube::Pods(), ns, options);
  if (!pods) return tl::unexpected(pods.error());
  std::erase_if(pods->items, [](const Json& pod) { return !HasFinalizer(pod); });
  sync::Mutex mu;
  std::optional<kube::Error> failed;
  sync::InBatches(pods->items.size(), calls_at_once, [&](std::size_t i) {
    const auto removed = RemoveFinalizer(api, pods->items[i]);
    const sync::MutexLock lock(&mu);
    if (!removed && !failed) failed = removed.error();
    return removed.has_value();
  });
  if (failed) return tl::unexpected(*failed);
  return static_cast<int>(pods->items.size());
}

}  // namespace ringmaster::controllers
