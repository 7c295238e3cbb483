// The startup and the readiness probe of one container: which counts now, when it is due, and what
// its answers make of the container. Runs nothing itself.
//
// Owner and thread: ContainerRunner; loop thread only.
#pragma once

#include <chrono>
#include <optional>

#include "operator/kube/kube_api.h"

namespace ringmaster::kubelet {

class ContainerProbes {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Kind { kStartup, kReadiness };

  // Null: the container has none.
  ContainerProbes(kube::Json startup, kube::Json readiness);

  // The container has begun.
  void Begin(TimePoint now);
  // The startup probe has passed, or there is none; readiness likewise.
  bool started() const { return started_; }
  bool ready() const { return ready_; }

  Kind current() const { return started_ ? Kind::kReadiness : Kind::kStartup; }
  // When the current one is to run. Nullopt: there is none, or its answer is awaited.
  std::optional<TimePoint> due() const;
  // The current one runs now, and again a period later.
  const kube::Json& Run(TimePoint now);
  // Its answer comes later: not due until then.
  void Await() { Of(current()).in_flight = true; }
  void Answered() { Of(current()).in_flight = false; }

  // False: the container never came up, and is to be killed.
  bool Count(Kind kind, bool passed);
  // When that probe is due, whether or not it counts.
  TimePoint NextOf(Kind kind) const { return (kind == Kind::kStartup ? startup_ : readiness_).due; }

 private:
  struct Probe {
    kube::Json spec;
    TimePoint due;
    bool in_flight = false;
    int successes = 0, failures = 0;
  };
  Probe& Of(Kind kind) { return kind == Kind::kStartup ? startup_ : readiness_; }

  Probe startup_, readiness_;
  bool started_ = false, ready_ = false;
};

}  // namespace ringmaster::kubelet
