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
#include "sidecar/launcher/foreign_slots.h"
#include "sidecar/launcher/library_slots.h"
#include "sidecar/launcher/link.h"
#include "sidecar/launcher/options.h"
#include "sidecar/launcher/pod_parts.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/signals.h"
#include "sidecar/launcher/slots.h"

namespace ringmaster::launcher {

class Launcher {
 public:
  explicit Launcher(Options options);

  // Runs until all slots have ended, a failure ended the pod, or it was told to stop. Returns the
  // exit code.
  int Run();

 private:
  // For the part that runs the processes of the slots.
  PodParts Lend();
  void WaitForSomething();
  void HandleSignals();
  void RunTimers();

  void OnUnfinished(const Unfinished& worker);
  // Whether there is a connection to the sidecar may have changed.
  void NoteSidecar();
  void OnHalt(const Child& child);
  void OnExit(const ChildExit& exit);

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
  Shutdown shutdown_;
  LibrarySlots library_;
  std::optional<ForeignSlots> foreign_;  // in its place where the collectives are not ours
  bool connected_ = false;
  uint64_t connections_ = 0;  // as many have been noted
  bool orphaned_ = false;
};

}  // namespace ringmaster::launcher
