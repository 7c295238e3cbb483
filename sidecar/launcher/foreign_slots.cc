#include "sidecar/launcher/foreign_slots.h"

#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sidecar/launcher/exit_policy.h"
#include "sidecar/launcher/frames.h"
#include "sidecar/launcher/log.h"

namespace ringmaster::launcher {
namespace {

using failure_policy::Action;
using nlohmann::json;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// Until the sidecar says that the job finishes.
constexpr seconds kUntilFinish{10};

}  // namespace

ForeignSlots::ForeignSlots(PodParts parts) : parts_(std::move(parts)) {
  seats_.resize(static_cast<size_t>(parts_.options->slots));
}

void ForeignSlots::Begin() {
  for (size_t slot = 0; slot < seats_.size(); ++slot) {
    Seat& seat = seats_[slot];
    seat.slot = static_cast<int>(slot);
    seat.port = std::make_unique<ReservedPort>(parts_.options->bind);
    if (seat.port->address().empty()) {
      LogError("no address for a process", {{"why", seat.port->error()}});
      return parts_.fail(1, seat.port->error());
    }
    const uint64_t incarnation = ++(*parts_.slots)[seat.slot].incarnation;
    seat.stand_in = std::make_unique<StandIn>(
        StandIn::Place{parts_.options->socket, seat.port->address(), seat.slot}, incarnation,
        EventsOf(&seat));
  }
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
    if (seat.process.TakeKill(now)) parts_.children->Signal(seat.slot, SIGKILL);
  }
  while (!parts_.shutdown->ending()) {
    const auto failed = unexplained_.TakeDue(now);
    if (!failed) break;
    ActOnFailure(&seats_[static_cast<size_t>(failed->child.slot)], *failed);
  }
  for (Seat& seat : seats_) {
    if (!Runs(seat) && seat.process.TakeStart(now)) StartProcess(&seat, now);
  }
}

void ForeignSlots::AddTo(std::vector<pollfd>* fds) const {
  for (const Seat& seat : seats_) {
    if (seat.stand_in != nullptr) fds->push_back({seat.stand_in->fd(), seat.stand_in->events(), 0});
  }
}

TimePoint ForeignSlots::NextWake() const {
  std::optional<TimePoint> wake = unexplained_.NextWake();
  for (const Seat& seat : seats_) {
    if (seat.stand_in != nullptr) wake = Earlier(wake, seat.stand_in->wake_at());
    wake = Earlier(wake, seat.process.NextWake(Runs(seat)));
  }
  return wake.value_or(TimePoint::max());
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
  seat->process.Enter(std::move(world), Clock::now());
}

void ForeignSlots::StartProcess(Seat* seat, TimePoint now) {
  Slot& slot = (*parts_.slots)[seat->slot];
  if (parts_.shutdown->ending() || parts_.shutdown->terminating() || slot.closed ||
      !seat->process.world())
    return;
  const World& world = *seat->process.world();
  Log("starting the process of a view", {{"slot", std::to_string(seat->slot)},
                                         {"view", world.view},
                                         {"reason", world.reason},
                                         {"rank", std::to_string(world.rank)},
                                         {"size", std::to_string(world.size)}});
  const StartedProcess started =
      parts_.children->Start(seat->slot, slot.incarnation, now,
                             EnvironmentOf(world, parts_.options->job, seat->process.CountStart()));
  if (started.pid < 0) {
    if (const auto delay = slot.retries.AfterFailure(started.error_number)) {
      seat->process.StartAgainAt(now + *delay);
      return Log("process not started, it is tried again",
                 {{"slot", std::to_string(seat->slot)}, {"reason", started.error}});
    }
    LogError(started.error, {{"slot", std::to_string(seat->slot)}});
    return parts_.fail(127, started.error);
  }
  slot.retries.Started();
  slot.pid = started.pid;
  parts_.link->Send(StartedFrame(seat->slot, slot.incarnation, started.pid, Clock::now()));
  seat->stand_in->Started(now);
}

void ForeignSlots::End(Seat* seat) {
  const TimePoint now = Clock::now();
  if (const auto& world = seat->process.world())
    Log("the view is over", {{"slot", std::to_string(seat->slot)}, {"view", world->view}});
  // A failure that this does not explain is left to Poll: here its stand-in calls us, which that
  // failure may end.
  if (unexplained_.OnViewOver(seat->slot, now)) ExplainByAnother(seat);
  seat->process.LeaveView();
  if (!Runs(*seat)) return seat->stand_in->Stopped();
  if (seat->process.TellToEnd(now)) parts_.children->Signal(seat->slot, SIGTERM);
}

void ForeignSlots::Leave(Seat* seat) {
  seat->process.LeaveByPlan();
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
  seat->process.ReplaceWorker(by_us);
  if (!Runs(*seat)) return FinishRenewal(seat);
  parts_.children->Signal(seat->slot, SIGKILL);
}

void ForeignSlots::FinishRenewal(Seat* seat) {
  Slot& slot = (*parts_.slots)[seat->slot];
  ChildExit exit{.pid = 0, .child = {}, .exit_code = 128 + SIGKILL, .signal = SIGKILL};
  exit.child.slot = seat->slot;
  exit.child.incarnation = slot.incarnation;
  const bool by_us = seat->process.TakeReplacement();
  parts_.link->Send(ForeignExitedFrame(exit, {.restarting = true, .by_us = by_us, .stays = false}));
  seat->stand_in->Renew(++slot.incarnation, Clock::now());
  parts_.link->Send(StartedFrame(seat->slot, slot.incarnation, 0, Clock::now()));
}

// ---- Processes that end

void ForeignSlots::OnExit(const ChildExit& exit) {
  Seat& seat = seats_[static_cast<size_t>(exit.child.slot)];
  Slot& slot = (*parts_.slots)[seat.slot];
  slot.pid = 0;
  const bool told = seat.process.Ended();
  if (parts_.shutdown->ending() || seat.process.leaves_by_plan()) {
    parts_.link->Send(ForeignExitedFrame(exit, {.by_us = true}));
    slot.closed = true;
    if (!told && !parts_.shutdown->stopping()) parts_.shutdown->SetExitCode(exit.exit_code);
    if (told) seat.stand_in->Stopped();
  } else if (seat.process.is_replaced()) {
    FinishRenewal(&seat);
  } else if (told) {
    parts_.link->Send(ForeignExitedFrame(exit, {.restarting = true, .by_us = true}));
    seat.stand_in->Stopped();
  } else if (exit.exit_code == 0) {
    parts_.link->Send(ForeignExitedFrame(exit, {}));
    parts_.slots->ExitedWell(exit.child.slot, Clock::now(), kUntilFinish);
    seat.stand_in->Finished();
  } else {
    OnFailure(&seat, exit);
  }
}

void ForeignSlots::OnFailure(Seat* seat, const ChildExit& exit) {
  if (!MayFollowAnother(exit)) return ActOnFailure(seat, exit);
  unexplained_.Add(exit, Clock::now());
  if (seat->process.IsInViewUpTo(broken_)) return ExplainByAnother(seat);
  // Whichever process was the first to fail, the job goes on in another view. An error that may
  // fail the job has to wait: the end of this view may explain it.
  const ExitDecision decision = DecideOnExit(parts_.options->rules, exit.exit_code);
  if (decision.action == Action::kFailJob) return;
  unexplained_.BrokeView(seat->slot);
  Break(seat, exit);
}

// Nobody can go on in a view without one of its processes.
void ForeignSlots::Break(Seat* seat, const ChildExit& exit) {
  if (!seat->process.world() || seat->process.IsInViewUpTo(broken_)) return;
  broken_ = seat->process.world()->epoch;
  seat->stand_in->Broken("its process exited with " + std::to_string(exit.exit_code));
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
    parts_.link->Send(ForeignExitedFrame(*exit, {.message = why}));
    parts_.shutdown->SetExitCode(exit->exit_code);
  }
}

void ForeignSlots::ExplainByAnother(Seat* seat) {
  const auto exit = unexplained_.Take(seat->slot);
  if (!exit) return;
  Log("worker exited after another one",
      {{"slot", std::to_string(seat->slot)}, {"exit_code", std::to_string(exit->exit_code)}});
  parts_.link->Send(ForeignExitedFrame(*exit, {.restarting = true, .by_us = true}));
}

void ForeignSlots::ActOnFailure(Seat* seat, const ChildExit& exit) {
  const ExitDecision decision = DecideOnExit(parts_.options->rules, exit.exit_code);
  const bool restart = decision.action == Action::kRestartWorker;
  parts_.link->Send(ForeignExitedFrame(
      exit, {.restarting = restart, .stays = restart, .message = decision.reason}));
  Log("worker exited", {{"slot", std::to_string(seat->slot)},
                        {"exit_code", std::to_string(exit.exit_code)},
                        {"action", failure_policy::ToString(decision.action)},
                        {"reason", decision.reason}});
  if (restart) {
    Break(seat, exit);
    for (Seat& other : seats_) {
      if (other.process.IsInViewUpTo(broken_)) ExplainByAnother(&other);
    }
  } else if (decision.action == Action::kIgnore) {
    (*parts_.slots)[seat->slot].closed = true;
    seat->stand_in.reset();
    if (parts_.slots->AllClosed()) parts_.fail(exit.exit_code, "all slots are empty");
  } else {
    parts_.fail(exit.exit_code, decision.reason);
  }
}

}  // namespace ringmaster::launcher
