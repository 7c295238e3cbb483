// One pod on the local kubelet: starts its containers in order, ends them in order.
//
// Owner and thread: the kubelet's loop; everything here is loop thread only.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "operator/kubelet/container_runner.h"
#include "operator/kubelet/pod_context.h"
#include "operator/kubelet/pod_status.h"

namespace ringmaster::kubelet {

class PodRunner {
 public:
  PodRunner(Json pod, const RunnerOptions& options, RunnerHost& host);
  PodRunner(const PodRunner&) = delete;  // its containers point into it
  PodRunner& operator=(const PodRunner&) = delete;

  // The pod object as it is now (annotations, deletion).
  void Update(Json pod, Clock::time_point now);
  // Does what is due; call after every event and at `next`.
  void Step(Clock::time_point now);
  void OnExit(pid_t pid, int wait_status, Clock::time_point now);
  void OnProbe(const std::string& container, int start, bool passed, Clock::time_point now);

  // TERM now, KILL at the end of the grace period (the pod's own, or less).
  void Terminate(std::chrono::milliseconds grace, Clock::time_point now);
  // The same because the node ends: that has failed the pod, whatever its containers make of it.
  void ShutDown(std::chrono::milliseconds grace, Clock::time_point now);
  // SIGKILL to every process, no restart: as if the machine was lost.
  void Kill(const std::string& reason, const std::string& message, Clock::time_point now);

  std::optional<Clock::time_point> next() const { return context_.next; }
  bool AllStopped() const;
  bool terminating() const { return terminating_; }
  PodView View() const;
  const Json& pod() const { return context_.pod; }
  std::string uid() const { return context_.uid(); }

  using Log = ContainerLog;
  // Of the first main container where `container` is empty.
  std::optional<Log> LogOf(const std::string& container) const;

 private:
  void StepRunning(Clock::time_point now);
  void StepTerminating(Clock::time_point now);
  bool MainsDone() const;

  PodContext context_;
  std::deque<ContainerRunner> containers_;
  bool terminating_ = false;  // by deletion or the kubelet's end
  bool finishing_ = false;    // mains are done: sidecars go
  bool killed_ = false;
  bool shut_down_ = false;
  std::string reason_, message_;
  Clock::time_point kill_at_;
};

}  // namespace ringmaster::kubelet
