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

// Time until the label is checked again: short, and then longer and longer, while it can't be set;
// long while it is set.
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
  // `pod` is our own pod, in `ns`.
  LeaderLabel(std::shared_ptr<kube::KubeApi> api, std::string ns, std::string pod);
  ~LeaderLabel();

  // Removes a label that is left from an earlier process of this pod, because it would lead
  // sidecars to an operator that doesn't lead. Call it before the election. It tries once.
  void Clear();
  // Sets the label, tries until that succeeds, and checks it again from time to time.
  void Start();
  // Removes the label. It tries once: otherwise the next leader removes it.
  void Stop();
  // Why the pod has no label; empty if it has.
  std::string error() const;

 private:
  void Run(std::stop_token stop);
  // Returns an empty text, or what went wrong.
  std::string MoveLabelToOwnPod();
  kube::Result<kube::Json> Set(const std::string& pod, const kube::Json& value);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string ns_, pod_;
  mutable sync::Mutex mu_;
  std::string error_ GUARDED_BY(mu_) = "not labelled yet";
  std::jthread thread_;
};

}  // namespace ringmaster::app
