// Whether this replica leads, and what shows that in the cluster: the lease, and the label of the
// leader's pod.
//
// It owns the election, the label and the fact that it leads. Thread rule: what is not const from
// one thread, the process's; the rest from any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "common/sync/mutex.h"
#include "operator/app/leader_label.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/leader_elector.h"

namespace ringmaster::app {

class Leadership {
 public:
  using Clock = std::chrono::steady_clock;

  struct Candidacy {
    std::string ns, lease;
    std::string pod;  // our own, in `ns`; empty: none, so there is no label
    runtime::ElectionOptions options;
    // The elector has a client of its own: a renewal must wait neither for a slow call nor for our
    // own rate limit.
    std::shared_ptr<kube::KubeApi> elector_api;
    std::shared_ptr<kube::KubeApi> label_api;
    // The lease is lost, so another replica may lead. Called from a thread of the elector.
    std::function<void(const std::string& why)> on_lost;
  };

  // There is no other replica: this one leads from now on.
  void LeadAlone();
  // Takes part in the election, once. Returns when this replica leads; false: `stop` came first.
  bool AwaitElection(Candidacy candidacy, std::stop_token stop);

  // Gives the pod the leader's label.
  void SetLabel();
  void RemoveLabel();
  // Gives the lease back, or ends the wait for it.
  void Release();

  bool leads() const;
  // Why the lease could not be read or written last time; empty: it could, or there is no election.
  std::string lease_error() const;
  // Why the pod has no label; empty: it has one, or needs none.
  std::string label_error() const;
  // The election has not tried to reach the lease for far too long.
  bool ElectionHangs(Clock::time_point now) const;

 private:
  mutable sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  bool leads_ GUARDED_BY(mu_) = false;
  std::chrono::milliseconds hung_after_ GUARDED_BY(mu_){0};

  // Only the process's thread sets these pointers, under mu_, because other threads read them under
  // mu_ for their answers. It reads them itself without mu_, so they have no GUARDED_BY.
  std::unique_ptr<runtime::LeaderElector> elector_;  // null: no election
  std::unique_ptr<LeaderLabel> label_;
};

}  // namespace ringmaster::app
