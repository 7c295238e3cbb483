// Releases pods that no running job waits for: removes the finalizer from pods whose job is gone,
// is being deleted or can't be read.
//
// Each method returns false if the job has to be reconciled again after a while.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class PodReleaser {
 public:
  // The caches outlive the releaser; the pods' cache must be indexed by JobKeyOf.
  PodReleaser(std::shared_ptr<kube::KubeApi> api, const runtime::Informer* jobs,
              const runtime::Informer* pods)
      : api_(std::move(api)), jobs_(jobs), pods_(pods) {}

  // Releases pods whose labels or owner name the job of this key, but which the existing job
  // doesn't own.
  bool ReleaseOrphans(const std::string& key);
  // Releases the pods of a job that is being deleted: the garbage collector deletes them, and
  // whether they are dead no longer matters. Deletes pods that the garbage collector has missed.
  bool ReleaseDeletedJob(const std::string& key, const kube::Json& job);
  // Releases the pods of a job that can't be read. Unless the job is `deleting`, only the dead
  // ones.
  bool ReleaseUnreadableJob(const std::string& key, const std::string& job_uid, bool deleting) {
    return ReleaseAll(key, job_uid, !deleting);
  }

 private:
  bool CollectLatePods(const std::string& key, const kube::Json& job);
  bool ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead);

  const std::shared_ptr<kube::KubeApi> api_;
  const runtime::Informer* const jobs_;
  const runtime::Informer* const pods_;
};

}  // namespace ringmaster::controllers
