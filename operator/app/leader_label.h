// Marks the leader's pod with the label ringmaster.dev/leader=true, by which the Service that
// sidecars dial finds it, and takes the mark from the other replicas' pods.
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

// How long until the mark is looked at again: soon, and then later and later, while it can't be
// set; from time to time where it is.
class MarkPace {
 public:
  static constexpr std::chrono::milliseconds kFirstRetry{500}, kLastRetry{10'000};
  static constexpr std::chrono::milliseconds kLookAgain{30'000};

  std::chrono::milliseconds After(bool marked) {
    const auto wait = marked ? kLookAgain : retry_;
    retry_ = marked ? kFirstRetry : std::min(retry_ * 2, kLastRetry);
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

  // Before the election: a mark from a former life of this pod sends sidecars to nobody. One try.
  void Clear();
  // Marks the pod, looks again from time to time, and tries until it succeeds.
  void Start();
  // Takes the mark away again. One try: whoever leads next does it otherwise.
  void Stop();
  // Why the pod is not marked; empty: it is.
  std::string error() const;

 private:
  void Run(std::stop_token stop);
  // Empty, or what went wrong.
  std::string Mark();
  kube::Result<kube::Json> Set(const std::string& pod, const kube::Json& value);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string ns_, pod_;
  mutable sync::Mutex mu_;
  std::string error_ GUARDED_BY(mu_) = "not marked yet";
  std::jthread thread_;
};

}  // namespace ringmaster::app
