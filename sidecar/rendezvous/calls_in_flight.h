// The unary calls a client has begun, so that it can end them all before its loop goes away.
//
// Thread rule: any thread. gRPC calls End from its own.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <set>

#include "common/sync/mutex.h"

namespace ringmaster::rendezvous {

class CallsInFlight {
 public:
  // False when stopped: don't start it.
  bool Begin(grpc::ClientContext* context) {
    sync::MutexLock lock(&mu_);
    if (stopped_) return false;
    contexts_.insert(context);
    return true;
  }

  void End(grpc::ClientContext* context) {
    sync::MutexLock lock(&mu_);
    contexts_.erase(context);
    ended_.NotifyAll();
  }

  void StopAndWait() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    sync::MutexLock lock(&mu_);
    stopped_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
    while (!contexts_.empty()) {
      if (!ended_.WaitUntil(&mu_, deadline)) return;
    }
  }

 private:
  sync::Mutex mu_;
  sync::CondVar ended_;
  std::set<grpc::ClientContext*> contexts_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
};

}  // namespace ringmaster::rendezvous
