// The launchers of all pods: what they decide by is sidecar/launcher's (slots, restarts, standbys,
// what an exit means, how it ends), in the order of launcher.cc and library_slots.cc; processes and
// socket are played.
//
// Owner: World. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "sidecar/launcher/clock.h"
#include "sidecar/launcher/exit_policy.h"
#include "tests/sim/journal.h"
#include "tests/sim/links.h"
#include "tests/sim/pod.h"
#include "tests/sim/pods.h"
#include "tests/sim/script.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"
#include "tests/sim/workers.h"

namespace ringmaster::app::sim {

class Launchers {
 public:
  // All of them outlive it.
  struct Parts {
    Random& random;
    Timeline& time;
    Journal& journal;
    const Script& script;
    const JobSize& job;
    Pods& pods;
    Links& links;
    Workers& workers;
    AgentPost to_agent;  // does work in a sidecar, unless that is gone
    std::function<void(int pod, const std::string& why)> kill_pod;
  };
  explicit Launchers(Parts parts) : parts_(std::move(parts)) {}

  // The pod's first process, unless it has begun.
  void Begin(int pod);
  // SIGTERM to the pod.
  void Terminate(int pod);
  void OnFrame(int pod, const json& frame);
  void OnClosed(int pod, std::uint64_t stream);
  // It reaps a process.
  void OnExit(const WorkerPtr& worker, int code, int signal);
  // A signal stops its child, or lets it go on.
  void TellHalt(const WorkerPtr& worker);

 private:
  void Connect(int pod);
  void Send(int pod, json frame);
  launcher::TimePoint Now() const;
  launcher::TimePoint PodNow(int pod) const {
    return launcher::TimePoint(std::chrono::microseconds(parts_.pods.Local(*parts_.pods[pod])));
  }
  void Sleep(int pod);
  void RunTimers(int pod);
  void StartProcess(int pod, int slot, std::uint64_t incarnation);
  void StartWorker(int pod, int slot);
  void StartStandby(int pod);
  void OnStandbyExit(int pod, const Child& child);
  void OnWorkerExit(int pod, const Child& child, int code, const launcher::ExitDecision& decision);
  void Restart(int pod, const Child& child);
  bool PromoteStandby(int pod, int slot);
  void StopAll(int pod, int code, Micros grace);
  void CheckEnd(int pod);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
