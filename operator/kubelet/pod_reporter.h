// Tells the API server how the kubelet's pods are: of each pod the newest state, again until the
// server has taken it. So the kubelet never waits for a server that is away.
//
// Owner and thread: Kubelet. One thread of its own writes; Report and Forget from any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/kubelet/pod_status.h"

namespace ringmaster::kubelet {

struct PodName {
  std::string ns, name, uid;
};

class PodReporter {
 public:
  // `address`: of the node, so of its pods. `at_once`: the API server is in this process, where a
  // call takes no time, so Report itself writes: nothing that others do comes before it.
  PodReporter(std::shared_ptr<kube::KubeApi> api, std::string address, bool at_once = false);
  ~PodReporter();

  void Start();
  // `remove`: the pod was asked to go and has gone, so its object is removed, too.
  void Report(const PodName& pod, PodView view, bool remove);
  // The object is gone.
  void Forget(const std::string& uid);
  // Until all is told, or the deadline.
  void Stop(std::chrono::milliseconds patience);

 private:
  struct State {
    PodName pod;
    PodView view;
    bool remove = false;
    bool told = false;
    std::chrono::steady_clock::time_point not_before;
  };
  enum class Outcome { kDone, kGone, kTryAgain };

  void Run(std::stop_token stop);
  // Of the state that is due first; nullopt: all is told.
  std::optional<State> TakeDue(std::stop_token stop);
  void Settle(const State& state, Outcome outcome);
  Outcome Tell(const State& state);
  Outcome WriteStatus(const State& state);
  Outcome Remove(const State& state);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string address_;
  const bool at_once_;
  sync::Mutex mu_;
  sync::StoppableCondVar changed_;
  sync::CondVar all_told_;
  std::map<std::string, State> states_ GUARDED_BY(mu_);  // by uid
  std::jthread thread_;
};

}  // namespace ringmaster::kubelet
