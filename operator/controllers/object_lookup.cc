#include "operator/controllers/object_lookup.h"

#include <optional>

namespace ringmaster::controllers {

using std::chrono::steady_clock;

template <class Read>
kube::Result<kube::Json> ObjectLookup::Cached(const std::string& key, const Read& read) {
  std::optional<kube::Json> before;
  {
    const sync::MutexLock lock(&mu_);
    const auto at = known_.find(key);
    if (at != known_.end()) {
      const Known& known = at->second;
      if (steady_clock::now() - known.read < (known.object ? age_ : absent_age_)) {
        return known.object;
      }
      if (known.object) before = *known.object;
    }
  }
  auto now = read();
  const sync::MutexLock lock(&mu_);
  const bool is_absent = !now && now.error().code == kube::ErrorCode::kNotFound;
  if (!now && !is_absent && before) return *before;
  if (now || is_absent || now.error().code == kube::ErrorCode::kForbidden) {
    known_.insert_or_assign(key, Known{now, steady_clock::now()});
  }
  return now;
}

kube::Result<kube::Json> ObjectLookup::Get(const kube::Resource& resource,
                                           const std::string& name) {
  return Cached(resource.plural + "/" + name, [&] { return api_->Get(resource, "", name); });
}

kube::Result<kube::Json> ObjectLookup::List(const kube::Resource& resource) {
  return Cached(resource.plural, [&]() -> kube::Result<kube::Json> {
    auto list = api_->ListAll(resource, "", {});
    if (!list) return tl::unexpected(list.error());
    return kube::Json(std::move(list->items));
  });
}

}  // namespace ringmaster::controllers
