// Starts, watches and restarts the worker processes of a pod.
//
// One thread, one poll loop. All processes that descend from a worker die with it, and all of them
// with the launcher.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sidecar/launcher/children.h"
#include "sidecar/launcher/exit_policy.h"
#include "sidecar/launcher/foreign_slots.h"
#include "sidecar/launcher/link.h"
#include "sidecar/launcher/options.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/signals.h"
#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/standby_schedule.h"

namespace ringmaster::launcher {

class Launcher {
 public:
  explicit Launcher(Options options);

  // Runs until all slots have ended, a failure ended the pod, or it was told to stop. Returns the
  // exit code.
  int Run();

 private:
  void Begin();
  void WaitForSomething();
  void HandleSignals();
  void RunTimers();

  void OnUnfinished(const Unfinished& worker);
  // Whether there is a connection to the sidecar may have changed.
  void NoteSidecar();
  void OnHalt(const Child& child);
  void OnExit(const ChildExit& exit);
  void OnWorkerExit(const ChildExit& exit, const ExitDecision& decision);
  void OnStandbyExit(const ChildExit& exit);
  void Restart(int slot_index, TimePoint began);
  bool PromoteStandby(int slot_index);
  void StartWorker(int slot_index);
  void StartStandby();

  std::string Greeting() const;
  void OnFrame(const nlohmann::json& frame);
  void ReportState(const nlohmann::json& frame);
  void OnFinish(bool left);
  void OnTerminate();
  // TERM to all, KILL after `grace`; the launcher then ends with `exit_code` unless it has one
  // already.
  void StopAll(int exit_code, std::chrono::milliseconds grace, const std::string& why);

  const Options options_;
  Signals signals_;
  Link link_;
  Children children_;
  Slots slots_;
  StandbySchedule standby_;
  Shutdown shutdown_;
  std::optional<ForeignSlots> foreign_;  // where the processes' collectives are not ours
  bool connected_ = false;
  bool orphaned_ = false;
};

}  // namespace ringmaster::launcher
