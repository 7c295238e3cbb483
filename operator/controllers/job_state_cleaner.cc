#include "operator/controllers/job_state_cleaner.h"

#include <utility>

#include "operator/api/object_key.h"
#include "operator/controllers/metrics.h"

namespace ringmaster::controllers {

void JobStateCleaner::Forget(const std::string& key, const std::string& uid) {
  if (const std::string former = ReplaceUid(key, uid); !former.empty()) {
    stores_.records->Forget(former);
    stores_.backoff->Forget(former);
    if (stores_.child_objects != nullptr) stores_.child_objects->Forget(former);
  }
  stores_.registry->Forget(key, uid);
  if (!uid.empty()) return;
  stores_.observer->Forget(key);
  const api::ObjectKey named = api::ParseKey(key);
  if (stores_.metrics != nullptr) stores_.metrics->Forget(named.ns, named.name);
}

// Returns the uid that the job of this key had before, if it was a different one; else "".
std::string JobStateCleaner::ReplaceUid(const std::string& key, const std::string& uid) {
  const sync::MutexLock lock(&mu_);
  std::string former;
  const auto known = uids_.try_emplace(key, uid).first;
  if (known->second != uid) former = std::exchange(known->second, uid);
  if (uid.empty()) uids_.erase(known);
  return former;
}

}  // namespace ringmaster::controllers
