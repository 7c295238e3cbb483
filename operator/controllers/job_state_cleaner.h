// Drops what is kept in memory about jobs that no longer exist. A job that is deleted in the
// background is missing at the next reconcile, or another job has its name.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <map>
#include <string>

#include "common/sync/mutex.h"
#include "operator/controllers/child_objects.h"
#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/job_observer.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/sidecar_registry.h"

namespace ringmaster::controllers {

class Metrics;

class JobStateCleaner {
 public:
  // The objects that keep something about jobs; all outlive the cleaner.
  struct Stores {
    SidecarRegistry* registry = nullptr;
    QuorumRecordStore* records = nullptr;
    JobObserver* observer = nullptr;
    CreationBackoff* backoff = nullptr;
    ChildObjects* child_objects = nullptr;  // may be null
    Metrics* metrics = nullptr;             // may be null
  };

  explicit JobStateCleaner(const Stores& stores) : stores_(stores) {}

  // The job of this key now has `uid`, which is empty if there is none. Drops what is kept about a
  // job that had the key before.
  void Forget(const std::string& key, const std::string& uid);

 private:
  std::string ReplaceUid(const std::string& key, const std::string& uid);

  const Stores stores_;
  sync::Mutex mu_;
  // Uid of each job at its last reconcile, by key.
  std::map<std::string, std::string> uids_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
