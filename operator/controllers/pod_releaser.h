// Releases pods that no running job waits for: removes the finalizer from pods whose job is gone,
// is being deleted or can't be read. Calls are made several at a time.
//
// Each method returns false if the job has to be reconciled again after a while.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class PodReleaser {
 public:
  // The caches outlive the releaser; the pods' cache must be indexed by JobKeyOf. `calls_at_once`:
  // concurrent calls to the API server.
  PodReleaser(std::shared_ptr<kube::KubeApi> api, const runtime::Informer* jobs,
              const runtime::Informer* pods, std::size_t calls_at_once)
      : api_(std::move(api)), jobs_(jobs), pods_(pods), calls_at_once_(calls_at_once) {}

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
  // Calls `call` with each of the pods, several at a time. Returns false if a call has.
  bool ForEach(const std::vector<runtime::ObjectPtr>& pods,
               const std::function<bool(const kube::Json& pod)>& call) const;
  bool CollectLatePods(const std::string& key, const kube::Json& job);
  bool ReleaseAll(const std::string& key, const std::string& job_uid, bool only_dead);

  const std::shared_ptr<kube::KubeApi> api_;
  const runtime::Informer* const jobs_;
  const runtime::Informer* const pods_;
  const std::size_t calls_at_once_;
};

}  // namespace ringmaster::controllers
