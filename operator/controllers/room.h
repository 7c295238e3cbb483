// Where the pods of a job would find a place: what all nodes have and what all pods take, kept by
// two caches of its own.
//
// Thread rule: every method is safe from any thread. Who asks and then lets pods start on the
// answer holds Turn() meanwhile, so that two jobs don't count on the same room.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/runtime/informer.h"
#include "operator/scheduler/capacity.h"

namespace ringmaster::controllers {

class Room {
 public:
  explicit Room(std::shared_ptr<kube::KubeApi> api);

  void Start();
  void Stop();
  std::vector<const runtime::Informer*> Caches() const { return {&nodes_, &pods_}; }

  std::unique_lock<std::mutex> Turn() { return std::unique_lock(turn_); }
  scheduler::GangFit FitTogether(const std::vector<kube::Json>& pods) const;
  // A pod as we have just written it.
  void Observe(const kube::Json& pod);

 private:
  std::mutex turn_;
  mutable std::mutex mu_;
  scheduler::Capacity capacity_;  // guarded by mu_
  runtime::Informer nodes_;
  runtime::Informer pods_;
};

}  // namespace ringmaster::controllers
