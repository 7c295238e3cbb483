// Marks the leader's pod with the label ringmaster.dev/leader=true, by which the Service that
// sidecars dial finds it, and takes the mark from the other replicas' pods.
//
// Thread rule: Start and Stop from one thread; error() from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "operator/kube/kube_api.h"

namespace ringmaster::app {

inline constexpr char kLeaderLabel[] = "ringmaster.dev/leader";

// How long to wait before the next look: twice as long after each failure.
class LabelPace {
 public:
  using Duration = std::chrono::milliseconds;
  explicit LabelPace(Duration first_retry = Duration(500), Duration last_retry = Duration(10'000),
                     Duration look_again = Duration(30'000))
      : first_retry_(first_retry),
        last_retry_(last_retry),
        look_again_(look_again),
        retry_(first_retry) {}

  Duration After(bool marked);

 private:
  const Duration first_retry_, last_retry_, look_again_;
  Duration retry_;
};

class LeaderLabel {
 public:
  // `pod`: our own, in `ns`.
  LeaderLabel(std::shared_ptr<kube::KubeApi> api, std::string ns, std::string pod,
              LabelPace pace = LabelPace());
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
  LabelPace pace_;  // of the thread
  mutable std::mutex mu_;
  std::condition_variable_any wake_;
  std::string error_ = "not marked yet";  // guarded by mu_
  std::jthread thread_;
};

}  // namespace ringmaster::app
