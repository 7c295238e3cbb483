// Gives the leader's pod the label ringmaster.dev/leader=true, by which the Service that
// sidecars dial finds it, and takes it from the other replicas' pods.
//
// Thread rule: Start and Stop from one thread; error() from any.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

// How long until the label is checked again: soon, and then later and later, while it can't be set;
// from time to time where it is.
class LabelCheckInterval {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{500}, kLastRetry{10'000};
  static constexpr std::chrono::milliseconds kCheckAgain{30'000};

  std::chrono::milliseconds After(bool is_set) {
    const auto wait = is_set ? kCheckAgain : retry_;
    retry_ = is_set ? kFirstRetry : std::min(retry_ * 2, kLastRetry);
    return wait;
  }

 private:
  std::chrono::milliseconds retry_ = kFirstRetry;
};

class LeaderLabel {
 public:
  // `pod`: our own, in `ns`.
  LeaderLabel(std::shared_ptr<kube::KubeApi> api, std::string ns, std::string pod);
  ~LeaderLabel();

  // Before the election: a label from a former life of this pod sends sidecars where no operator
  // leads. One try.
  void Clear();
  // Labels the pod, looks again from time to time, and tries until it succeeds.
  void Start();
  // Takes the label away again. One try: the next leader does it otherwise.
  void Stop();
  // Why the pod is not labelled; empty: it is.
  std::string error() const;

 private:
  void Run(std::stop_token stop);
  // Empty, or what went wrong.
  std::string MoveLabelToOwnPod();
  kube::Result<kube::Json> Set(const std::string& pod, const kube::Json& value);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string ns_, pod_;
  mutable sync::Mutex mu_;
  std::string error_ GUARDED_BY(mu_) = "not labelled yet";
  std::jthread thread_;
};

}  // namespace ringmaster::app
