// Starts, watches and restarts the worker processes of a pod.
//
// One thread, one poll loop. All processes that descend from a worker die with it, and all of them
// with the launcher.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/job/worker_exit.h"
#include "sidecar/launcher/link.h"
#include "sidecar/launcher/options.h"

namespace ringmaster::launcher {

class Launcher {
 public:
  explicit Launcher(Options options);

  // Runs until all slots have ended, a failure ended the pod, or it was told to stop. Returns the
  // exit code.
  int Run();

 private:
  using Clock = std::chrono::steady_clock;
  using TimePoint = Clock::time_point;

  struct Process {
    int family = 0;
    int slot = -1;  // -1: a standby
    uint64_t incarnation = 0;
    TimePoint began;  // started, or promoted
    bool standby() const { return slot < 0; }
  };
  struct Slot {
    uint64_t incarnation = 0;
    pid_t pid = 0;         // 0: none runs
    int quick_deaths = 0;  // in a row
    bool closed = false;   // nothing will run here again
    std::optional<TimePoint> restart_at;
    std::optional<TimePoint>
        finish_by;  // it exited 0; by then the sidecar has said that the job finishes
  };

  bool OpenSignals();
  void WaitForSomething();
  TimePoint NextWake() const;
  void RunTimers();

  void HandleSignals();
  void ReapChildren();
  void TellExit(const job::WorkerExit& exit, pid_t pid, const std::string& message);
  void OnExit(pid_t pid, int exit_code, int signal);
  void OnWorkerExit(const Process& process, int exit_code, int signal);
  void OnStandbyExit(const Process& process, pid_t pid, int exit_code, int signal);
  void Restart(int slot_index, const Process& died);
  bool PromoteStandby(int slot_index);
  void SweepStrays();

  void StartWorker(int slot_index);
  void StartStandby();
  std::vector<std::string> WorkerEnvironment(int slot, uint64_t incarnation, bool standby) const;

  std::string Greeting();
  void OnFrame(const nlohmann::json& frame);
  void OnKill(const nlohmann::json& frame);
  void OnFinish();
  void OnTerminate();
  // TERM to all, KILL after `grace`; the launcher then ends with `exit_code` unless it has one
  // already.
  void StopAll(int exit_code, std::chrono::milliseconds grace, const std::string& why);
  void SignalAll(int signal);
  void SetExitCode(int code);
  bool AllClosed() const;
  bool Stopping() const { return kill_at_.has_value(); }

  const Options options_;
  const pid_t parent_;
  Link link_;
  int signals_ = -1;

  std::map<pid_t, Process> processes_;
  std::vector<Slot> slots_;
  int next_family_ = 1;
  int standby_deaths_ = 0;
  uint64_t standby_incarnation_ = 0;
  std::optional<TimePoint> standby_at_;  // when to start the next one
  std::optional<TimePoint> sweep_at_;
  std::optional<TimePoint>
      term_at_;  // SIGTERM came: pass it on then, if the drain has not ended by itself
  std::optional<TimePoint> kill_at_;
  bool terminating_ = false;
  bool finishing_ = false;
  bool orphaned_ = false;
  std::optional<int> exit_code_;
};

}  // namespace ringmaster::launcher
