// The unary calls a client has begun, so that it can end them all before its loop goes away.
//
// A call's context holds the channel. If the last channel of a process goes on one of gRPC's own
// threads, gRPC 1.51 makes that thread wait for its own end, and the process aborts. So the context
// goes before the call counts as ended, while its client still has the channel.
//
// Thread rule: any thread. gRPC calls End from its own.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
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

  // `call` has a member `context`, which was begun.
  template <typename Call>
  void End(std::shared_ptr<Call> call) {
    sync::MutexLock lock(&mu_);
    contexts_.erase(&call->context);
    call.reset();
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
