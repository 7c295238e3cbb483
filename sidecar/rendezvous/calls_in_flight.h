// The unary calls a client has begun, so that it can end them all before its loop goes away.
//
// Thread rule: any thread. gRPC calls End from its own.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

namespace ringmaster::rendezvous {

class CallsInFlight {
 public:
  // False when stopped: don't start it.
  bool Begin(grpc::ClientContext* context) {
    std::lock_guard<std::mutex> lock(mu_);
    if (stopped_) return false;
    contexts_.insert(context);
    return true;
  }

  void End(grpc::ClientContext* context) {
    std::lock_guard<std::mutex> lock(mu_);
    contexts_.erase(context);
    ended_.notify_all();
  }

  void StopAndWait() {
    std::unique_lock<std::mutex> lock(mu_);
    stopped_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
    ended_.wait_for(lock, std::chrono::seconds(2), [this] { return contexts_.empty(); });
  }

 private:
  std::mutex mu_;
  std::condition_variable ended_;
  std::set<grpc::ClientContext*> contexts_;  // guarded by mu_
  bool stopped_ = false;                     // guarded by mu_
};

}  // namespace ringmaster::rendezvous
