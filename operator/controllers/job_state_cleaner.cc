#include "operator/controllers/job_state_cleaner.h"

#include <utility>

#include "operator/controllers/metrics.h"

namespace ringmaster::controllers {

void JobStateCleaner::Forget(const std::string& key, const std::string& uid) {
  if (const std::string former = ReplaceUid(key, uid); !former.empty()) {
    keepers_.records->Forget(former);
    keepers_.backoff->Forget(former);
    if (keepers_.child_objects != nullptr) keepers_.child_objects->Forget(former);
  }
  keepers_.registry->Forget(key, uid);
  if (!uid.empty()) return;
  keepers_.observer->Forget(key);
  const std::size_t slash = key.find('/');
  if (keepers_.metrics != nullptr) {
    keepers_.metrics->Forget(key.substr(0, slash), key.substr(slash + 1));
  }
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
