// A simulated worker process, as collectives/sidecar_client, elastic and engine behave towards the
// sidecar.
#include <algorithm>
#include <utility>

#include "common/failure_policy/failure_policy.h"
#include "common/membership/view_json.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kPing = 250 * kMs, kFence = 10 * kSecond;
constexpr Micros kFirstWait = 50 * kMs, kLastWait = 1000 * kMs;

}  // namespace

std::string World::Name(const Worker& worker) const {
  return pods_[worker.pod]->uid + "/" +
         (worker.slot < 0 ? std::string("standby") : std::to_string(worker.slot)) + "." +
         std::to_string(worker.incarnation);
}

// ---- The process

bool World::Frozen(const Worker& worker) const {
  return std::max(worker.stopped_until, pods_[worker.pod]->machine_until) > time_.now();
}

void World::ToWorker(const WorkerPtr& worker, std::function<void()> work) {
  if (!worker->alive) return;
  if (!Frozen(*worker)) return work();
  worker->asleep.push_back([this, worker, work = std::move(work)] { ToWorker(worker, work); });
}

void World::Thaw(const WorkerPtr& worker) {
  if (!worker->alive || Frozen(*worker)) return;
  const auto ready = std::exchange(worker->asleep, {});
  if (!worker->fenced && CheckFence(worker)) return;
  for (const auto& work : ready) work();
}

void World::Exit(const WorkerPtr& worker, int code, int signal) {
  if (!std::exchange(worker->alive, false)) return;
  Trace([&] { return Name(*worker) + " exits with " + std::to_string(code); });
  // A restart from the checkpoint ends workers: a fence may have to pass before it is known that it
  // is needed, and the operator waits for 5 s. Where the record is gone, an operator that has just
  // started first gives the sidecars 20 s to tell of a view (planner::HeardAllBy).
  if (healed_at_ >= 0 && time_.now() > healed_at_ + 25 * kSecond && code != 0 &&
      !pods_[worker->pod]->launcher.ending() && !finishing_) {
    Fail(Name(*worker) + " exits with " + std::to_string(code) + " long after the last fault");
  }
  if (worker->stream != 0) CloseByProcess(worker->stream);
  worker->asleep.clear();
  if (pods_[worker->pod]->gone) return;
  time_.After(random_.Between(100, 3 * kMs), [this, worker, code, signal] {
    // Its parent sleeps with it.
    const Micros until = pods_[worker->pod]->machine_until;
    if (until <= time_.now()) return OnExit(worker, code, signal);
    time_.At(until, [this, worker, code, signal] { OnExit(worker, code, signal); });
  });
}

// The script comes out of its call with an error, or is done.
void World::EndSoon(const WorkerPtr& worker, int code) {
  if (!worker->ended) LeaveView(worker.get());
  worker->ended = true;
  time_.After(random_.Between(10 * kMs, 400 * kMs), [this, worker, code] {
    ToWorker(worker, [this, worker, code] { Exit(worker, code, 0); });
  });
}

// Its job has ended. It goes when the sidecar has heard so, or has been away for too long.
void World::ExitWhenHeard(const WorkerPtr& worker, Micros since) {
  if (worker->answered > since || time_.now() > since + kFence) return EndSoon(worker, 0);
  time_.After(20 * kMs, [this, worker, since] {
    ToWorker(worker, [this, worker, since] { ExitWhenHeard(worker, since); });
  });
}

// ---- The link

void World::WorkerConnect(const WorkerPtr& worker) {
  if (worker->stream != 0) return;
  worker->stream = Connect(worker->pod, worker);
  if (worker->stream == 0) {
    worker->connect_wait = std::clamp(worker->connect_wait * 2, kFirstWait, kLastWait);
    // A machine that is busy takes its time.
    const Micros late = random_.Chance(60) ? random_.Below(9 * kSecond) : 0;
    time_.After(worker->connect_wait + late,
                [this, worker] { ToWorker(worker, [this, worker] { WorkerConnect(worker); }); });
    return;
  }
  const bool standby =
      worker->standby && (worker->role == Role::kUnknown || worker->role == Role::kStandby);
  if (worker->reported_installed != 0) ++coverage_.late_hellos;
  SendToSidecar(worker->stream, {{"t", "hello"},
                                 {"version", 1},
                                 {"role", "worker"},
                                 {"slot", worker->slot},
                                 {"incarnation", worker->incarnation},
                                 {"pid", worker->pid},
                                 {"tcp", Name(*worker)},
                                 {"shm", ""},
                                 {"epoch", worker->reported_installed},
                                 {"given", worker->phase == Phase::kNoView ? 0 : worker->epoch},
                                 {"standby", standby}});
}

void World::WorkerClosed(const WorkerPtr& worker, std::uint64_t stream) {
  if (worker->stream != stream) return;
  worker->stream = 0;
  worker->welcomed = false;
  worker->connect_wait = kFirstWait;
  const Micros late = random_.Chance(100) ? random_.Below(9 * kSecond) : 0;
  time_.After(kFirstWait + late,
              [this, worker] { ToWorker(worker, [this, worker] { WorkerConnect(worker); }); });
}

// Before the welcome the sidecar doesn't know who speaks: it waits.
void World::WorkerSend(const WorkerPtr& worker, json frame) {
  if (worker->stream == 0 || !worker->welcomed) return worker->queued.push_back(std::move(frame));
  SendToSidecar(worker->stream, std::move(frame));
}

bool World::CheckFence(const WorkerPtr& worker) {
  if (worker->finished != 0) return false;
  if (worker->fenced || worker->answered == 0 || time_.now() < worker->answered + kFence)
    return worker->fenced;
  worker->fenced = true;
  ++coverage_.fenced;
  Trace([&] { return Name(*worker) + " is fenced"; });
  EndSoon(worker, failure_policy::kDroppedExitCode);
  return true;
}

void World::WorkerBeat(const WorkerPtr& worker) {
  if (!worker->alive) return;
  time_.After(kPing, [this, worker] { WorkerBeat(worker); });
  if (Frozen(*worker) || CheckFence(worker) || !worker->welcomed) return;
  worker->unanswered[++worker->pings] = time_.now();
  SendToSidecar(worker->stream, {{"t", "ping"},
                                 {"n", worker->pings},
                                 {"epoch", worker->reported_installed},
                                 {"step", worker->step},
                                 {"ran", worker->ran},
                                 {"holds", worker->held},
                                 {"busy", false},
                                 {"values", json::object()}});
}

void World::WorkerFrame(const WorkerPtr& worker, std::uint64_t stream, const json& frame) {
  if (worker->stream != stream) return;
  const std::string type = frame["t"];
  if (type != "pong") Trace([&] { return Name(*worker) + " <- " + frame.dump(); });
  if (type == "pong") {
    auto& sent = worker->unanswered;
    const std::uint64_t number = frame["n"];
    while (!sent.empty() && sent.begin()->first <= number) {
      worker->answered = std::max(worker->answered, sent.begin()->second);
      sent.erase(sent.begin());
    }
  } else if (type == "welcome") {
    OnWelcome(worker, frame);
  } else if (type == "promoted") {
    Detach(worker);
    worker->slot = frame["slot"];
    worker->incarnation = frame["incarnation"];
    if (FindProcess(worker->pod, worker->slot, worker->incarnation) != worker)
      Fail(Name(*worker) + " is told that it is promoted, and it is another process");
    worker->role = Role::kJoining;
    Enter(worker);
  } else if (type == "view") {
    OnView(worker, frame);
  } else if (type == "stop") {
    const Epoch epoch = frame["epoch"];
    worker->stopped = std::max(worker->stopped, epoch);
    if (worker->epoch <= epoch) LeaveView(worker.get());
    WorkerSend(worker, {{"t", "stopped"}, {"epoch", epoch}, {"holds", worker->held}});
  } else if (type == "arm") {
    OnArm(worker, frame["epoch"]);
  } else if (type == "left") {
    const SimPod& pod = *pods_[worker->pod];
    if (!pod.leaving && !finishing_) Fail(Name(*worker) + " is told to leave");
    if (worker->ended) return;
    WorkerSend(worker, {{"t", "bye"}, {"reason", "left"}});
    EndSoon(worker, 0);
  } else if (type == "error") {
    const std::string message = frame["message"];
    if (message.find("belongs to") == std::string::npos) {
      Fail(Name(*worker) + " is told to give up: " + message);
    }
    EndSoon(worker, 1);
  }
}

// ---- collectives/elastic

void World::OnWelcome(const WorkerPtr& worker, const json& frame) {
  const std::string state = frame["state"];
  const Role role = state == "bootstrap" ? Role::kBootstrap
                    : state == "standby" ? Role::kStandby
                    : state == "member"  ? Role::kMember
                                         : Role::kJoining;
  worker->unanswered.clear();
  if (worker->answered == 0) worker->answered = time_.now();
  if (role == Role::kJoining) Detach(worker);
  const bool reconnect = worker->role != Role::kUnknown;
  const bool standby = worker->standby && worker->slot < 0;
  if (!(role == Role::kMember && reconnect))
    worker->role = role == Role::kMember ? Role::kJoining : role;
  if (!standby && (frame["slot"] != worker->slot || frame["incarnation"] != worker->incarnation))
    Fail(Name(*worker) + " is welcomed as another: " + frame.dump());
  worker->welcomed = true;
  if (reconnect && role == Role::kJoining) worker->wants_to_enter = worker->user_waits;
  if (reconnect) RepeatToSidecar(worker);
  for (json& queued : std::exchange(worker->queued, {}))
    SendToSidecar(worker->stream, std::move(queued));
  if (reconnect) return;
  if (worker->role == Role::kBootstrap) {
    AskToEnter(worker);
  } else if (worker->role == Role::kJoining) {
    Enter(worker);
  }
}

// What a sidecar that has just started again may not know.
void World::RepeatToSidecar(const WorkerPtr& worker) {
  if (worker->wants_to_enter) worker->queued.push_back({{"t", "enter"}});
  if (worker->finished != 0)
    worker->queued.push_back({{"t", "finished"}, {"epoch", worker->finished}});
  if (worker->boundary_epoch == worker->reported_installed && worker->boundary_epoch != 0 &&
      worker->boundary_step == worker->step) {
    worker->queued.push_back(
        {{"t", "boundary"}, {"epoch", worker->boundary_epoch}, {"step", worker->boundary_step}});
  }
  if (worker->phase == Phase::kNoView) return;
  for (const int rank : worker->suspected) {
    worker->queued.push_back(
        {{"t", "suspect"}, {"epoch", worker->epoch}, {"rank", rank}, {"reason", "closed"}});
  }
  if (worker->broken) {
    worker->queued.push_back({{"t", "broken"},
                              {"epoch", worker->epoch},
                              {"rank", *worker->broken},
                              {"reason", "reset"}});
  }
}

void World::AskToEnter(const WorkerPtr& worker) {
  worker->user_waits = true;
  if (!std::exchange(worker->wants_to_enter, true)) WorkerSend(worker, {{"t", "enter"}});
}

// The script has built its model and wants to be in a view.
void World::Enter(const WorkerPtr& worker) {
  time_.After(random_.Between(10 * kMs, 300 * kMs), [this, worker] {
    ToWorker(worker, [this, worker] {
      if (!worker->ended && !worker->entered) AskToEnter(worker);
    });
  });
}

void World::OnView(const WorkerPtr& worker, const json& frame) {
  auto parsed = membership::ViewFromJson(frame["view"]);
  if (!parsed) return Fail("a view that can't be read: " + parsed.error());
  const auto view = std::make_shared<const membership::View>(std::move(*parsed));
  Announce(view);
  const int self = frame["self"];
  const SimPod& pod = *pods_[worker->pod];
  const int rank =
      view->FindRank(pod.uid, static_cast<std::uint32_t>(worker->slot), worker->incarnation);
  if (self != rank)
    Fail(Name(*worker) + " is rank " + std::to_string(rank) + ", told " + frame.dump());
  if (self < 0) {
    worker->role = Role::kJoining;
    worker->wants_to_enter = worker->user_waits;
    if (worker->user_waits) WorkerSend(worker, {{"t", "enter"}});
  }
  if (view->epoch <= std::max(worker->epoch, worker->stopped) || worker->ended) return;
  worker->epoch = view->epoch;
  if (self < 0) return Detach(worker);
  // Everybody has what a job begins with.
  const bool begins = view->reason == membership::Reason::kBootstrap ||
                      !view->ranks[static_cast<std::size_t>(self)].joined;
  if (!worker->entered && !worker->detached && begins) worker->has_state = true;
  if (worker->has_state) worker->held = view->epoch;
  if (view->reason == membership::Reason::kBootstrap && membership::EpochNumber(view->epoch) == 1) {
    if (worker->ran != 0 || worker->entered)
      Fail("I5: " + Name(*worker) + " has been in a view and is taken for a fresh one");
    worker->holds = true;
  } else if (!worker->has_state) {
    worker->holds = false;
  }
  LeaveView(worker.get());
  worker->view = view;
  worker->suspected.clear();
  worker->broken.reset();
  worker->phase = Phase::kConnecting;
  TickSoon(view->epoch);
}

// ---- collectives/engine

void World::LeaveView(Worker* worker) {
  // The others' connections to it are closed.
  if (worker->phase != Phase::kNoView) TickSoon(worker->epoch);
  Interrupt(worker);
  worker->phase = Phase::kNoView;
}

void World::OnArm(const WorkerPtr& worker, Epoch epoch) {
  worker->armed = std::max(worker->armed, epoch);
  if (epoch == worker->epoch && worker->phase == Phase::kActive &&
      (worker->standing || !worker->entered)) {
    ReachBoundary(worker);
  }
}

void World::ReachBoundary(const WorkerPtr& worker) {
  worker->boundary_epoch = worker->epoch;
  worker->boundary_step = worker->step;
  WorkerSend(worker, {{"t", "boundary"}, {"epoch", worker->epoch}, {"step", worker->step}});
}

// Dropped: its state is void, and its script goes on alone until its step ends.
void World::Detach(const WorkerPtr& worker) {
  LeaveView(worker.get());
  worker->holds = false;
  worker->has_state = false;
  worker->held = 0;
  worker->log.Trim();
  worker->done = 0;
  if (worker->epoch == 0) return;
  const bool waits = worker->standing || !worker->entered;
  worker->detached = worker->detached || worker->entered;
  worker->entered = false;
  const Micros step = waits ? 0 : random_.Below(150 * kMs);
  time_.After(step, [this, worker] {
    ToWorker(worker, [this, worker] {
      if (worker->entered || worker->ended) return;
      worker->standing = worker->detached;
      AskToEnter(worker);
    });
  });
}

}  // namespace ringmaster::app::sim
