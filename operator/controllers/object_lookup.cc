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
    if (at != known_.end() && steady_clock::now() - at->second.read < age_) {
      return at->second.object;
    }
    if (at != known_.end()) before = at->second.object;
  }
  auto read = api_->Get(resource, "", name);
  const sync::MutexLock lock(&mu_);
  if (read) {
    known_[key] = {*read, steady_clock::now()};
    return read;
  }
  if (read.error().code == kube::ErrorCode::kNotFound) {
    known_.erase(key);
    return read;
  }
  if (before) return *before;
  return read;
}

}  // namespace ringmaster::controllers
