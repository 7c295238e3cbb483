#include "operator/controllers/object_lookup.h"

#include <optional>

namespace ringmaster::controllers {

using std::chrono::steady_clock;

kube::Result<kube::Json> ObjectLookup::Get(const kube::Resource& resource,
                                           const std::string& name) {
  const std::string key = resource.plural + "/" + name;
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
  auto read = api_->Get(resource, "", name);
  const sync::MutexLock lock(&mu_);
  if (read || read.error().code == kube::ErrorCode::kNotFound) {
    known_.insert_or_assign(key, Known{read, steady_clock::now()});
    return read;
  }
  if (before) return *before;
  return read;
}

}  // namespace ringmaster::controllers
