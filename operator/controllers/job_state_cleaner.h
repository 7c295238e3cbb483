// Drops what is kept in memory of jobs that are gone. A job that is deleted in the background is
// just not there any more the next time, or another one has its name.
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
  // What keeps something of jobs; all outlive the cleaner.
  struct Stores {
    SidecarRegistry* registry = nullptr;
    QuorumRecordStore* records = nullptr;
    JobObserver* observer = nullptr;
    CreationBackoff* backoff = nullptr;
    ChildObjects* child_objects = nullptr;  // may be null
    Metrics* metrics = nullptr;             // may be null
  };

  explicit JobStateCleaner(const Stores& keepers) : keepers_(keepers) {}

  // The job of this key has `uid` now; empty: there is none. Forgets those that had the key before.
  void Forget(const std::string& key, const std::string& uid);

 private:
  std::string ReplaceUid(const std::string& key, const std::string& uid);

  const Stores keepers_;
  sync::Mutex mu_;
  // Of the jobs as they were last looked at, by key.
  std::map<std::string, std::string> uids_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
