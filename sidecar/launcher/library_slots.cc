#include "sidecar/launcher/library_slots.h"

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "sidecar/launcher/frames.h"
#include "sidecar/launcher/log.h"
#include "sidecar/launcher/process.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Action;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

}  // namespace

// ---- Processes that start

void LibrarySlots::Begin() {
  const Options& options = *parts_.options;
  for (int slot = 0; slot < options.slots && !parts_.shutdown->exit_code(); ++slot)
    StartWorker(slot);
  if (options.standbys > 0 && !parts_.shutdown->exit_code()) StartStandby();
}

void LibrarySlots::StartDue(TimePoint now) {
  for (int slot : parts_.slots->TakeRestarts(now)) StartWorker(slot);
  if (standby_.TakeStart(now)) StartStandby();
}

void LibrarySlots::Restart(int slot_index, TimePoint began) {
  Slot& slot = (*parts_.slots)[slot_index];
  const milliseconds delay = slot.backoff.AfterDeath(Clock::now() - began);
  if (PromoteStandby(slot_index)) return;  // the standbys' own start is held back instead
  if (delay.count() == 0) {
    StartWorker(slot_index);
  } else {
    slot.restart_at = Clock::now() + delay;
  }
}

bool LibrarySlots::PromoteStandby(int slot_index) {
  Slot& slot = (*parts_.slots)[slot_index];
  const TimePoint now = Clock::now();
  const pid_t pid = parts_.children->PromoteStandby(slot_index, slot.incarnation + 1, now);
  if (pid == 0) return false;
  slot.pid = pid;
  ++slot.incarnation;
  parts_.link->Send({{"t", "promoted"},
                     {"slot", slot_index},
                     {"incarnation", slot.incarnation},
                     {"pid", slot.pid}});
  Log("standby promoted",
      {{"slot", std::to_string(slot_index)}, {"incarnation", std::to_string(slot.incarnation)}});
  standby_.Promoted(now);
  return true;
}

void LibrarySlots::StartWorker(int slot_index) {
  Slot& slot = (*parts_.slots)[slot_index];
  if (parts_.shutdown->ending()) {
    slot.closed = true;
    return;
  }
  const TimePoint now = Clock::now();
  const StartedProcess started = parts_.children->Start(slot_index, slot.incarnation + 1, now);
  if (started.pid < 0) return OnFailedStart(slot_index, started);
  ++slot.incarnation;
  slot.retries.Started();
  slot.pid = started.pid;
  parts_.link->Send(StartedFrame(slot_index, slot.incarnation, started.pid, now));
}

void LibrarySlots::OnFailedStart(int slot_index, const StartedProcess& failed) {
  Slot& slot = (*parts_.slots)[slot_index];
  if (const auto delay = slot.retries.AfterFailure(failed.error_number)) {
    slot.restart_at = Clock::now() + *delay;
    return Log("worker not started, it is tried again",
               {{"slot", std::to_string(slot_index)}, {"reason", failed.error}});
  }
  LogError(failed.error, {{"slot", std::to_string(slot_index)}});
  slot.closed = true;
  parts_.fail(127, failed.error);
}

void LibrarySlots::StartStandby() {
  if (parts_.shutdown->ending()) return;
  const uint64_t incarnation = standby_.NextIncarnation();
  const TimePoint now = Clock::now();
  const StartedProcess started = parts_.children->Start(-1, incarnation, now);
  if (started.pid < 0) {
    standby_.Died({}, now);  // perhaps there were too many processes just now
    return Log(started.error, {{"standby", "true"}});
  }
  parts_.link->Send(StartedFrame(-1, incarnation, started.pid, now));
}

// ---- Processes that end

void LibrarySlots::OnExit(const ChildExit& exit) {
  if (exit.child.standby()) return OnStandbyExit(exit);
  (*parts_.slots)[exit.child.slot].pid = 0;
  const bool by_us = parts_.shutdown->ending();
  const ExitDecision decision = DecideOnExit(parts_.options->rules, exit.exit_code);
  const bool restarting =
      !by_us && exit.exit_code != 0 && decision.action == Action::kRestartWorker;
  const bool dropped = exit.exit_code == failure_policy::kDroppedExitCode;
  parts_.link->Send(ExitedFrame(exit, restarting, by_us || dropped || exit.child.ended_by_us,
                                exit.exit_code == 0 ? "" : decision.reason));
  parts_.link->Poll(Clock::now());  // before anything slow: the others wait for this news
  OnWorkerExit(exit, decision);
}

void LibrarySlots::OnWorkerExit(const ChildExit& exit, const ExitDecision& decision) {
  Slot& slot = (*parts_.slots)[exit.child.slot];
  if (parts_.shutdown->ending()) {
    slot.closed = true;
    // Killed by the stop itself is no failure of the script.
    if (!parts_.shutdown->stopping() && exit.exit_code != 0)
      parts_.shutdown->SetExitCode(exit.exit_code);
    return;
  }
  if (exit.exit_code == 0) {
    parts_.slots->ExitedWell(exit.child.slot, Clock::now());
    return;
  }
  Log("worker exited", {{"slot", std::to_string(exit.child.slot)},
                        {"incarnation", std::to_string(exit.child.incarnation)},
                        {"exit_code", std::to_string(exit.exit_code)},
                        {"action", failure_policy::ToString(decision.action)},
                        {"reason", decision.reason}});
  switch (decision.action) {
    case Action::kRestartWorker:
      Restart(exit.child.slot, exit.child.began);
      break;
    case Action::kReplacePod:
    case Action::kFailJob:
      parts_.fail(exit.exit_code, decision.reason);
      break;
    case Action::kIgnore:
      slot.closed = true;
      if (parts_.slots->AllClosed()) parts_.fail(exit.exit_code, "all slots are empty");
      break;
  }
}

void LibrarySlots::OnStandbyExit(const ChildExit& exit) {
  const bool by_us = parts_.shutdown->ending();
  parts_.link->Send(ExitedFrame(exit, !by_us, by_us, ""));
  if (by_us) return;
  Log("standby exited", {{"exit_code", std::to_string(exit.exit_code)}});
  const TimePoint now = Clock::now();
  standby_.Died(now - exit.child.began, now);
}

}  // namespace ringmaster::launcher
