// Where the pods of a job would find a place: what all nodes have and what all pods take, kept by
// two caches of its own.
//
// Thread rule: every method is safe from any thread. GangAdmission sees to it that two jobs don't
// count on the same capacity.
#pragma once

#include <memory>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/informer.h"
#include "operator/scheduler/capacity.h"

namespace ringmaster::controllers {

class CapacityCache {
 public:
  explicit CapacityCache(std::shared_ptr<kube::KubeApi> api);

  void Start();
  void Stop();
  std::vector<const runtime::Informer*> Caches() const { return {&nodes_, &pods_}; }

  scheduler::GangFit FitTogether(const std::vector<kube::Json>& pods) const;
  // A pod as we have just written it.
  void Observe(const kube::Json& pod);

 private:
  mutable sync::Mutex mu_;
  scheduler::Capacity capacity_ GUARDED_BY(mu_);
  runtime::Informer nodes_;
  runtime::Informer pods_;
};

}  // namespace ringmaster::controllers
