// One container of a pod on the local kubelet: its process, when it starts again, its probes.
//
// Owner and thread: PodRunner; loop thread only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "operator/kubelet/container_env.h"
#include "operator/kubelet/container_probes.h"
#include "operator/kubelet/pod_context.h"
#include "operator/kubelet/pod_status.h"

namespace ringmaster::kubelet {

struct ContainerLog {
  std::filesystem::path file;
  uint64_t offset = 0;  // where the current or last process began
  bool running = false;
  bool started = false;
  std::optional<uint64_t> previous = {};  // where the process before that one began
};

class ContainerRunner {
 public:
  // `pod` outlives it.
  ContainerRunner(const Json& spec, ContainerKind kind, PodContext* pod);

  const ContainerState& state() const { return state_; }
  bool running() const { return pid_ > 0; }

  // Starts it when it is time, and runs its probes. True: what comes after it may start.
  bool Advance(Clock::time_point now);
  // A process has ended: ours, a probe's, or none of both. `pod_goes_on`: it may start again.
  void OnExit(pid_t pid, int wait_status, bool pod_goes_on, Clock::time_point now);
  // The answer to a probe over a socket, of the container's `start`-th start.
  void OnProbe(int start, bool passed, Clock::time_point now);

  // Once for each process.
  void SendTerm();
  // Whatever it has started, wherever that went, too.
  void Kill();
  // The process and its group alone, at once.
  void KillGroup();
  // The pod ends: a container that waits for its next start has ended with the last.
  void StopWaiting();

  ContainerLog Log(bool pod_ends) const;

 private:
  void Start(Clock::time_point now);
  tl::expected<ContainerSetup, SetupError> SetUp() const;
  void CannotStart(const SetupError& error, Clock::time_point now);
  void Ended(int exit_code, bool pod_goes_on, Clock::time_point now);
  void StepProbes(Clock::time_point now);
  void RunProbe(Clock::time_point now);
  bool StartExecProbe(const Json& probe);
  void CountProbe(ContainerProbes::Kind kind, bool passed, Clock::time_point now);
  void ShowProbes();

  PodContext* const pod_;
  const Json spec_;
  ContainerState state_;
  pid_t pid_ = 0;
  int starts_ = 0;
  int crashes_ = 0;  // in a row
  Clock::time_point began_, not_before_;
  bool term_sent_ = false;
  uint64_t log_offset_ = 0;
  std::optional<uint64_t> previous_offset_;
  ContainerProbes probes_;
  ContainerSetup probe_setup_;
  struct {
    pid_t pid = 0;
    ContainerProbes::Kind kind = ContainerProbes::Kind::kStartup;
    Clock::time_point deadline;
  } exec_probe_;
};

}  // namespace ringmaster::kubelet
