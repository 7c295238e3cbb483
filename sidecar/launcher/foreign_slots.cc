#include "sidecar/launcher/foreign_slots.h"

#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sidecar/launcher/frames.h"
#include "sidecar/launcher/log.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Action;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// Pods often come one after the other: what is started in the meantime would be ended at once.
constexpr milliseconds kSettle{500};
// Between TERM, in which a script may write its checkpoint, and KILL.
constexpr seconds kEndGrace{5};
// Until the sidecar says that the job finishes.
constexpr seconds kUntilFinish{10};

}  // namespace

ForeignSlots::ForeignSlots(Parts parts) : parts_(std::move(parts)) {
  seats_.resize(static_cast<size_t>(parts_.options->slots));
}

bool ForeignSlots::Begin() {
  for (size_t slot = 0; slot < seats_.size(); ++slot) {
    Seat& seat = seats_[slot];
    seat.slot = static_cast<int>(slot);
    seat.port = std::make_unique<ReservedPort>(parts_.options->bind);
    if (seat.port->address().empty()) {
      LogError("no address for a process", {{"why", seat.port->error()}});
      parts_.fail(1, seat.port->error());
      return false;
    }
    const uint64_t incarnation = ++(*parts_.slots)[seat.slot].incarnation;
    seat.stand_in = std::make_unique<StandIn>(
        StandIn::Place{parts_.options->socket, seat.port->address(), seat.slot}, incarnation,
        EventsOf(&seat));
  }
  return true;
}

StandIn::Events ForeignSlots::EventsOf(Seat* seat) {
  return {.began = [this, seat](World world) { Enter(seat, std::move(world)); },
          .stop = [this, seat] { End(seat); },
          .left = [this, seat] { Leave(seat); },
          .fenced = [this, seat] { Renew(seat, "the sidecar has not answered for long", true); },
          .refused =
              [this](const std::string& message) {
                LogError("the job can't go on", {{"message", message}});
                parts_.fail(1, message);
              }};
}

// ---- Time

void ForeignSlots::Poll(TimePoint now) {
  for (Seat& seat : seats_) {
    if (seat.stand_in != nullptr) seat.stand_in->Poll(now);
    if (TakeDue(&seat.kill_at, now)) parts_.children->Signal(seat.slot, SIGKILL);
  }
  while (!parts_.shutdown->ending()) {
    const auto failed = unexplained_.TakeDue(now);
    if (!failed) break;
    ActOnFailure(&seats_[static_cast<size_t>(failed->child.slot)], *failed);
  }
  for (Seat& seat : seats_) {
    if (!Runs(seat) && TakeDue(&seat.start_at, now)) StartProcess(&seat, now);
  }
}

void ForeignSlots::AddTo(std::vector<pollfd>* fds) const {
  for (const Seat& seat : seats_) {
    if (seat.stand_in != nullptr) fds->push_back({seat.stand_in->fd(), seat.stand_in->events(), 0});
  }
}

TimePoint ForeignSlots::NextWake() const {
  TimePoint wake = TimePoint::max();
  for (const Seat& seat : seats_) {
    if (seat.stand_in != nullptr) wake = std::min(wake, seat.stand_in->wake_at());
    if (seat.start_at && !Runs(seat)) wake = std::min(wake, *seat.start_at);
    if (seat.kill_at) wake = std::min(wake, *seat.kill_at);
  }
  if (const auto due = unexplained_.NextWake()) wake = std::min(wake, *due);
  return wake;
}

bool ForeignSlots::Runs(const Seat& seat) const { return (*parts_.slots)[seat.slot].pid != 0; }

json ForeignSlots::Running() const {
  json running = json::array();
  for (const Seat& seat : seats_) {
    const Slot& slot = (*parts_.slots)[seat.slot];
    if (seat.stand_in == nullptr || slot.closed) continue;
    running.push_back({{"slot", seat.slot},
                       {"incarnation", slot.incarnation},
                       {"pid", slot.pid},
                       {"standby", false},
                       {"stopped", parts_.children->Stopped(slot.pid)},
                       {"standbyIncarnation", 0}});
  }
  return running;
}

// ---- Views

void ForeignSlots::Enter(Seat* seat, World world) {
  if (!world.train) {
    Log("waiting for more workers", {{"view", world.view}, {"reason", world.reason}});
    return;
  }
  seat->world = std::move(world);
  seat->start_at = Clock::now() + kSettle;
}

void ForeignSlots::StartProcess(Seat* seat, TimePoint now) {
  Slot& slot = (*parts_.slots)[seat->slot];
  if (parts_.shutdown->ending() || parts_.shutdown->terminating() || slot.closed || !seat->world)
    return;
  const World& world = *seat->world;
  Log("starting the process of a view", {{"slot", std::to_string(seat->slot)},
                                         {"view", world.view},
                                         {"reason", world.reason},
                                         {"rank", std::to_string(world.rank)},
                                         {"size", std::to_string(world.size)}});
  const StartedProcess started = parts_.children->Start(
      seat->slot, slot.incarnation, now, EnvironmentOf(world, parts_.options->job, seat->starts++));
  if (started.pid < 0) {
    LogError(started.error, {{"slot", std::to_string(seat->slot)}});
    return parts_.fail(127, started.error);
  }
  slot.pid = started.pid;
  parts_.link->Send(StartedFrame(seat->slot, slot.incarnation, started.pid, Clock::now()));
  seat->stand_in->Started(now);
}

void ForeignSlots::End(Seat* seat) {
  if (seat->world)
    Log("the view is over", {{"slot", std::to_string(seat->slot)}, {"view", seat->world->view}});
  OnViewOver(seat);
  seat->start_at.reset();
  seat->world.reset();
  if (!Runs(*seat)) return seat->stand_in->Stopped();
  if (std::exchange(seat->told_to_end, true)) return;
  seat->kill_at = Clock::now() + kEndGrace;
  parts_.children->Signal(seat->slot, SIGTERM);
}

void ForeignSlots::Leave(Seat* seat) {
  seat->leaving = true;
  End(seat);
  if (!Runs(*seat)) (*parts_.slots)[seat->slot].closed = true;
}

// ---- Another worker in a place

void ForeignSlots::Kill(int64_t slot, int64_t incarnation, const std::string& reason, bool by_us) {
  for (Seat& seat : seats_) {
    const auto current = static_cast<int64_t>((*parts_.slots)[seat.slot].incarnation);
    if (seat.slot == slot && current == incarnation && seat.stand_in != nullptr)
      Renew(&seat, reason, by_us);
  }
}

void ForeignSlots::Renew(Seat* seat, const std::string& reason, bool by_us) {
  Log("replacing a worker", {{"slot", std::to_string(seat->slot)}, {"reason", reason}});
  ExplainByAnother(seat);
  seat->start_at.reset();
  seat->world.reset();
  seat->renewal = Renewal{.by_us = by_us};
  if (!Runs(*seat)) return FinishRenewal(seat);
  parts_.children->Signal(seat->slot, SIGKILL);
}

void ForeignSlots::FinishRenewal(Seat* seat) {
  Slot& slot = (*parts_.slots)[seat->slot];
  ChildExit exit{.pid = 0, .child = {}, .exit_code = 128 + SIGKILL, .signal = SIGKILL};
  exit.child.slot = seat->slot;
  exit.child.incarnation = slot.incarnation;
  Report(exit, /*restarting=*/true, seat->renewal->by_us, /*stays=*/false, "");
  seat->renewal.reset();
  seat->told_to_end = false;
  seat->stand_in->Renew(++slot.incarnation, Clock::now());
  parts_.link->Send(StartedFrame(seat->slot, slot.incarnation, 0, Clock::now()));
}

// ---- Processes that end

void ForeignSlots::OnExit(const ChildExit& exit) {
  Seat& seat = seats_[static_cast<size_t>(exit.child.slot)];
  Slot& slot = (*parts_.slots)[seat.slot];
  slot.pid = 0;
  seat.kill_at.reset();
  const bool told = std::exchange(seat.told_to_end, false);
  if (parts_.shutdown->ending() || seat.leaving) {
    Report(exit, /*restarting=*/false, /*by_us=*/true, /*stays=*/true, "");
    slot.closed = true;
    if (!told && !parts_.shutdown->stopping()) parts_.shutdown->SetExitCode(exit.exit_code);
    if (told) seat.stand_in->Stopped();
  } else if (seat.renewal) {
    FinishRenewal(&seat);
  } else if (told) {
    Report(exit, /*restarting=*/true, /*by_us=*/true, /*stays=*/true, "");
    seat.stand_in->Stopped();
  } else if (exit.exit_code == 0) {
    Report(exit, /*restarting=*/false, /*by_us=*/false, /*stays=*/true, "");
    slot.finish_by = Clock::now() + kUntilFinish;
    seat.stand_in->Finished();
  } else {
    OnFailure(&seat, exit);
  }
}

void ForeignSlots::OnFailure(Seat* seat, const ChildExit& exit) {
  if (!MayFollowAnother(exit)) return ActOnFailure(seat, exit);
  unexplained_.Add(exit, Clock::now());
  if (seat->world && seat->world->epoch <= broken_) return ExplainByAnother(seat);
  // Whichever process was the first to fail, the job goes on in another view. An error that may
  // fail the job has to wait: the end of this view may explain it.
  const ExitDecision decision = DecideOnExit(parts_.options->rules, exit.exit_code);
  if (decision.action == Action::kFailJob) return;
  unexplained_.BrokeView(seat->slot);
  Break(seat, exit);
}

// Nobody can go on in a view without one of its processes.
void ForeignSlots::Break(Seat* seat, const ChildExit& exit) {
  if (!seat->world || seat->world->epoch <= broken_) return;
  broken_ = seat->world->epoch;
  seat->stand_in->Broken("its process exited with " + std::to_string(exit.exit_code));
}

// A failure that the end of the view does not explain is left to Poll: here its stand-in calls us,
// which that failure may end.
void ForeignSlots::OnViewOver(Seat* seat) {
  if (unexplained_.OnViewOver(seat->slot, Clock::now())) ExplainByAnother(seat);
}

// When the job finishes, no death that could explain a failure is to be heard of any more: the
// failure counts. When the pod is stopped, another process of it has failed, or it goes away, which
// says nothing of the script.
void ForeignSlots::OnEnding() {
  for (Seat& seat : seats_) {
    if (parts_.shutdown->stopping()) ExplainByAnother(&seat);
    const auto exit = unexplained_.Take(seat.slot);
    if (!exit) continue;
    const std::string why = "it failed just before the job finished";
    Log("worker exited", {{"slot", std::to_string(seat.slot)},
                          {"exit_code", std::to_string(exit->exit_code)},
                          {"reason", why}});
    Report(*exit, /*restarting=*/false, /*by_us=*/false, /*stays=*/true, why);
    parts_.shutdown->SetExitCode(exit->exit_code);
  }
}

void ForeignSlots::ExplainByAnother(Seat* seat) {
  const auto exit = unexplained_.Take(seat->slot);
  if (!exit) return;
  Log("worker exited after another one",
      {{"slot", std::to_string(seat->slot)}, {"exit_code", std::to_string(exit->exit_code)}});
  Report(*exit, /*restarting=*/true, /*by_us=*/true, /*stays=*/true, "");
}

void ForeignSlots::ActOnFailure(Seat* seat, const ChildExit& exit) {
  const ExitDecision decision = DecideOnExit(parts_.options->rules, exit.exit_code);
  const bool restart = decision.action == Action::kRestartWorker;
  Report(exit, restart, /*by_us=*/false, /*stays=*/restart, decision.reason);
  Log("worker exited", {{"slot", std::to_string(seat->slot)},
                        {"exit_code", std::to_string(exit.exit_code)},
                        {"action", failure_policy::ToString(decision.action)},
                        {"reason", decision.reason}});
  if (restart) {
    Break(seat, exit);
    for (Seat& other : seats_) {
      if (other.world && other.world->epoch <= broken_) ExplainByAnother(&other);
    }
  } else if (decision.action == Action::kIgnore) {
    (*parts_.slots)[seat->slot].closed = true;
    seat->stand_in.reset();
    if (parts_.slots->AllClosed()) parts_.fail(exit.exit_code, "all slots are empty");
  } else {
    parts_.fail(exit.exit_code, decision.reason);
  }
}

void ForeignSlots::Report(const ChildExit& exit, bool restarting, bool by_us, bool stays,
                          const std::string& why) {
  json frame = ExitedFrame(exit, restarting, by_us, why);
  frame["stays"] = stays;
  parts_.link->Send(frame);
}

}  // namespace ringmaster::launcher
