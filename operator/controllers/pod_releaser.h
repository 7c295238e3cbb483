// Lets pods go that no running job waits for: takes the finalizer off those whose job is gone, is
// being deleted or can't be read.
//
// Each method returns false where the job has to be looked at again after a while.
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
  // The caches outlive the releaser; that of the pods has them by JobKeyOf.
  PodReleaser(std::shared_ptr<kube::KubeApi> api, const runtime::Informer* jobs,
              const runtime::Informer* pods)
      : api_(std::move(api)), jobs_(jobs), pods_(pods) {}

  // Pods that are labelled or owned as of the job of this key, and not owned by the one that
  // exists.
  bool ReleaseOrphans(const std::string& key);
  // Pods of a job that is being deleted: they are the garbage collector's then, and whether they
  // are dead matters no more. Deletes those that it has missed.
  bool ReleaseDeletedJob(const std::string& key, const kube::Json& job);
  // Pods of a job that can't be read. Unless the job is `deleting`, only the dead ones.
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
