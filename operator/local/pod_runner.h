// One pod on the local kubelet: starts its containers in order, restarts them by policy, ends them
// in order.
//
// Owner and thread: the kubelet's loop; everything here is loop thread only.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/local/container_env.h"
#include "operator/local/pod_status.h"

namespace ringmaster::local {

using Clock = std::chrono::steady_clock;

struct RunnerOptions {
  std::filesystem::path run_dir;
  std::filesystem::path bin_dir;
  std::string run_mark;  // RINGMASTER_RUN=<id>
  std::vector<std::string> machine_env;
  std::chrono::milliseconds first_backoff{100};
  std::chrono::milliseconds longest_backoff{10'000};
  std::chrono::milliseconds stable_after{
      30'000};  // a container that ran so long restarts at once again
};

// What the kubelet does for its runners.
class RunnerHost {
 public:
  virtual ~RunnerHost() = default;
  // Calls PodRunner::OnExit when the process ends.
  virtual void WatchProcess(pid_t pid, const std::string& pod_uid) = 0;
  virtual Json Read(const kube::Resource& resource, const std::string& ns,
                    const std::string& name) = 0;
  // Later, on the loop: PodRunner::OnProbe. `where`: host:port and path, or just host:port for a
  // TCP probe.
  virtual void ProbeHttp(const std::string& pod_uid, const std::string& container, int start,
                         const std::string& host_port, const std::string& path,
                         std::chrono::milliseconds timeout) = 0;
};

class PodRunner {
 public:
  PodRunner(Json pod, const RunnerOptions& options, RunnerHost& host);

  // The pod object as it is now (annotations, deletion).
  void Update(Json pod, Clock::time_point now);
  // Does what is due; call after every event and at `next`.
  void Step(Clock::time_point now);
  void OnExit(pid_t pid, int wait_status, Clock::time_point now);
  void OnProbe(const std::string& container, int start, bool passed, Clock::time_point now);

  // TERM now, KILL at the end of the grace period (the pod's own, or less).
  void Terminate(std::chrono::milliseconds grace, Clock::time_point now);
  // SIGKILL to every process, no restart: as if the machine was lost.
  void Kill(const std::string& reason, const std::string& message, Clock::time_point now);

  std::optional<Clock::time_point> next() const { return next_; }
  bool AllStopped() const;
  bool terminating() const { return view_terminating_; }
  PodView View() const;
  const Json& pod() const { return pod_; }
  std::string uid() const { return pod_["metadata"]["uid"]; }

  struct Log {
    std::filesystem::path file;
    uint64_t offset = 0;  // where the current or last process began
    bool running = false;
    bool started = false;
  };
  std::optional<Log> LogOf(const std::string& container) const;

 private:
  struct Probe {
    Json spec;  // null: none
    Clock::time_point due;
    bool in_flight = false;
    int successes = 0, failures = 0;
  };
  struct Container {
    ContainerState state;
    Json spec;
    pid_t pid = 0;
    int starts = 0;
    int crashes = 0;  // in a row
    Clock::time_point began, not_before;
    bool term_sent = false;
    uint64_t log_offset = 0;
    Probe startup, readiness;
    pid_t probe_pid = 0;  // of an exec probe
    bool probe_is_startup = false;
    Clock::time_point probe_deadline;
  };

  std::string Mark(const Container& c) const;
  std::filesystem::path LogFile(const Container& c) const;
  void StepRunning(Clock::time_point now);
  void StepTerminating(Clock::time_point now);
  // True when what comes after this container may start.
  bool Advance(Container& c, Clock::time_point now);
  void Start(Container& c, Clock::time_point now);
  void CannotStart(Container& c, const SetupError& error, Clock::time_point now);
  void Ended(Container& c, int exit_code, Clock::time_point now);
  void ResetProbes(Container& c, Clock::time_point now);
  void StepProbes(Container& c, Clock::time_point now);
  void RunProbe(Container& c, Probe& probe, Clock::time_point now);
  void ProbeResult(Container& c, bool startup, bool passed, Clock::time_point now);
  std::optional<std::string> ProbeAddress(const Container& c, const Json& port) const;
  void SendTerm(Container& c);
  void KillContainer(Container& c);
  bool Restarts(const Container& c) const;
  void Due(Clock::time_point when);
  bool MainsDone() const;

  const RunnerOptions& options_;
  RunnerHost& host_;
  Json pod_;
  std::deque<Container> containers_;
  std::optional<Clock::time_point> next_;
  bool view_terminating_ = false;  // by deletion or the kubelet's end
  bool finishing_ = false;         // mains are done: sidecars go
  bool killed_ = false;
  std::string reason_, message_;
  Clock::time_point kill_at_;
};

}  // namespace ringmaster::local
