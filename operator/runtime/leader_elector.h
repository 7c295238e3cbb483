// Keeps a Lease, or waits for it: the loop around Election. It leads at most once: a process that
// has lost the lease has to start anew, because it can't know what others did meanwhile.
//
// Thread rule: call Start and Stop from one thread, the other methods from any. Callbacks come from
// threads of the elector, without a lock; they must not call Stop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/leader_election.h"

namespace ringmaster::runtime {

struct ElectorCallbacks {
  std::function<void()> on_leading;
  // Called at most renew_deadline after the last renewal, even while a call hangs, and so before
  // another replica may lead.
  std::function<void(const std::string& why)> on_lost;
};

class LeaderElector {
 public:
  struct State {
    bool leading = false;
    std::string holder;  // as last read
    std::string error;   // why the lease could not be read or written last time; empty if it could
    Election::Clock::time_point last_try;
  };

  // `api` should not be shared: its deadlines have to be shorter than renew_deadline, and no other
  // caller may use up its rate limit.
  LeaderElector(std::shared_ptr<kube::KubeApi> api, std::string ns, std::string name,
                ElectionOptions options, ElectorCallbacks callbacks);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;

  void Start();
  // Ends the loop. If we lead, it releases the lease, so that another replica leads within its
  // retry_period. on_lost is not called.
  void Stop();
  State state() const;

 private:
  using Clock = Election::Clock;

  void Run(std::stop_token stop);
  void EnforceDeadline(std::stop_token stop);
  // Reads or writes the lease as Election asks; a write may follow the read.
  void Try();
  // Returns false if the lease could not be read.
  bool Look();
  void Write(const LeaseFacts& facts, bool create);
  void Publish(const std::string& error);
  void Lose(const std::string& why);
  bool Sleep(std::stop_token stop);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string ns_, name_;
  const ElectionOptions options_;
  const ElectorCallbacks callbacks_;
  Election election_;            // loop thread only; after it has ended, Stop's
  std::string reported_error_;   // loop thread only
  std::string reported_holder_;  // loop thread only

  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  State state_ GUARDED_BY(mu_);
  Clock::time_point deadline_ GUARDED_BY(mu_);  // while leading
  bool lost_ GUARDED_BY(mu_) = false;
  std::jthread loop_, deadline_thread_;
};

}  // namespace ringmaster::runtime
