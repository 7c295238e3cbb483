#include "tests/sim/workers.h"

#include <algorithm>
#include <utility>

#include "common/failure_policy/failure_policy.h"
#include "common/membership/view_json.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kPing = 250 * kMs, kFence = 10 * kSecond;
constexpr Micros kFirstWait = 50 * kMs, kLastWait = 1000 * kMs;

}  // namespace

// ---- The process

void Workers::Thaw(const WorkerPtr& worker) {
  if (!worker->alive || parts_.pods.Frozen(*worker)) return;
  const auto ready = std::exchange(worker->asleep, {});
  if (!worker->fenced && CheckFence(worker)) return;
  for (const auto& work : ready) work();
}

void Workers::Exit(const WorkerPtr& worker, int code, int signal) {
  if (!std::exchange(worker->alive, false)) return;
  parts_.journal.Trace(
      [&] { return parts_.pods.NameOf(*worker) + " exits with " + std::to_string(code); });
  // A restart from the checkpoint ends workers: a fence may have to pass before it is known that it
  // is needed, and the operator waits for 5 s. Where the record is gone, an operator that has just
  // started first gives the sidecars 20 s to tell of a view (planner::HeardAllBy).
  const auto healed_at = parts_.plan.healed_at();
  if (healed_at && parts_.time.now() > *healed_at + 25 * kSecond && code != 0 &&
      !parts_.pods[worker->pod]->launcher.ending() && !parts_.script.finished()) {
    parts_.journal.Fail(parts_.pods.NameOf(*worker) + " exits with " + std::to_string(code) +
                        " long after the last fault");
  }
  if (worker->stream != 0) parts_.links.CloseByProcess(worker->stream);
  worker->asleep.clear();
  if (parts_.pods[worker->pod]->gone) return;
  parts_.time.After(parts_.random.Between(100, 3 * kMs), [this, worker, code, signal] {
    // Its parent sleeps with it.
    const Micros until = parts_.pods[worker->pod]->machine_until;
    if (until <= parts_.time.now()) return parts_.reaped(worker, code, signal);
    parts_.time.At(until, [this, worker, code, signal] { parts_.reaped(worker, code, signal); });
  });
}

// The script comes out of its call with an error, or is done.
void Workers::EndSoon(const WorkerPtr& worker, int code) {
  if (!worker->ended) parts_.rings.LeaveView(worker.get());
  worker->ended = true;
  parts_.time.After(parts_.random.Between(10 * kMs, 400 * kMs), [this, worker, code] {
    parts_.pods.ToWorker(worker, [this, worker, code] { Exit(worker, code, 0); });
  });
}

// Its job has ended. It goes when the sidecar has heard so, or has been away for too long.
void Workers::ExitWhenHeard(const WorkerPtr& worker, Micros since) {
  if (worker->answered > since || parts_.time.now() > since + kFence) return EndSoon(worker, 0);
  parts_.time.After(20 * kMs, [this, worker, since] {
    parts_.pods.ToWorker(worker, [this, worker, since] { ExitWhenHeard(worker, since); });
  });
}

// ---- The link

void Workers::Connect(const WorkerPtr& worker) {
  if (worker->stream != 0) return;
  worker->stream = parts_.links.Open(worker->pod, worker);
  if (worker->stream == 0) {
    worker->connect_wait = std::clamp(worker->connect_wait * 2, kFirstWait, kLastWait);
    // A machine that is busy takes its time.
    const Micros late = parts_.random.Chance(60) ? parts_.random.Below(9 * kSecond) : 0;
    parts_.time.After(worker->connect_wait + late, [this, worker] {
      parts_.pods.ToWorker(worker, [this, worker] { Connect(worker); });
    });
    return;
  }
  const bool standby =
      worker->standby && (worker->role == Role::kUnknown || worker->role == Role::kStandby);
  if (worker->reported_installed != 0) ++parts_.journal.coverage().late_hellos;
  parts_.links.SendToSidecar(worker->stream, {{"t", "hello"},
                                              {"version", 1},
                                              {"role", "worker"},
                                              {"slot", worker->slot},
                                              {"incarnation", worker->incarnation},
                                              {"pid", worker->pid},
                                              {"tcp", parts_.pods.NameOf(*worker)},
                                              {"shm", ""},
                                              {"epoch", worker->reported_installed},
                                              {"given", worker->given},
                                              {"standby", standby}});
}

void Workers::OnClosed(const WorkerPtr& worker, std::uint64_t stream) {
  if (worker->stream != stream) return;
  worker->stream = 0;
  worker->welcomed = false;
  worker->connect_wait = kFirstWait;
  const Micros late = parts_.random.Chance(100) ? parts_.random.Below(9 * kSecond) : 0;
  parts_.time.After(kFirstWait + late, [this, worker] {
    parts_.pods.ToWorker(worker, [this, worker] { Connect(worker); });
  });
}

bool Workers::CheckFence(const WorkerPtr& worker) {
  if (worker->finished != 0) return false;
  if (worker->fenced || worker->answered == 0 || parts_.time.now() < worker->answered + kFence)
    return worker->fenced;
  worker->fenced = true;
  ++parts_.journal.coverage().fenced;
  parts_.journal.Trace([&] { return parts_.pods.NameOf(*worker) + " is fenced"; });
  EndSoon(worker, failure_policy::kDroppedExitCode);
  return true;
}

void Workers::Beat(const WorkerPtr& worker) {
  if (!worker->alive) return;
  parts_.time.After(kPing, [this, worker] { Beat(worker); });
  if (parts_.pods.Frozen(*worker) || CheckFence(worker) || !worker->welcomed) return;
  worker->unanswered[++worker->pings] = parts_.time.now();
  parts_.links.SendToSidecar(worker->stream, {{"t", "ping"},
                                              {"n", worker->pings},
                                              {"epoch", worker->reported_installed},
                                              {"step", worker->step},
                                              {"ran", worker->ran},
                                              {"holds", worker->held},
                                              {"busy", false},
                                              {"values", json::object()}});
}

void Workers::OnFrame(const WorkerPtr& worker, std::uint64_t stream, const json& frame) {
  if (worker->stream != stream) return;
  const std::string type = frame["t"];
  if (type != "pong")
    parts_.journal.Trace([&] { return parts_.pods.NameOf(*worker) + " <- " + frame.dump(); });
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
    if (parts_.pods.Find(worker->pod, worker->slot, worker->incarnation) != worker)
      parts_.journal.Fail(parts_.pods.NameOf(*worker) +
                          " is told that it is promoted, and it is another process");
    worker->role = Role::kJoining;
    Enter(worker);
  } else if (type == "view") {
    OnView(worker, frame);
  } else if (type == "stop") {
    const Epoch epoch = frame["epoch"];
    worker->stopped = std::max(worker->stopped, epoch);
    if (worker->epoch <= epoch) parts_.rings.LeaveView(worker.get());
    parts_.links.SendFrom(worker, {{"t", "stopped"}, {"epoch", epoch}, {"holds", worker->held}});
  } else if (type == "arm") {
    OnArm(worker, frame["epoch"]);
  } else if (type == "left") {
    const SimPod& pod = *parts_.pods[worker->pod];
    if (!pod.leaving && !parts_.script.finished())
      parts_.journal.Fail(parts_.pods.NameOf(*worker) + " is told to leave");
    if (worker->ended) return;
    parts_.links.SendFrom(worker, {{"t", "bye"}, {"reason", "left"}});
    EndSoon(worker, 0);
  } else if (type == "error") {
    const std::string message = frame["message"];
    if (message.find("belongs to") == std::string::npos) {
      parts_.journal.Fail(parts_.pods.NameOf(*worker) + " is told to give up: " + message);
    }
    EndSoon(worker, 1);
  }
}

// ---- collectives/elastic

void Workers::OnWelcome(const WorkerPtr& worker, const json& frame) {
  const std::string state = frame["state"];
  const Role role = state == "bootstrap" ? Role::kBootstrap
                    : state == "standby" ? Role::kStandby
                    : state == "member"  ? Role::kMember
                                         : Role::kJoining;
  worker->unanswered.clear();
  if (worker->answered == 0) worker->answered = parts_.time.now();
  if (role == Role::kJoining) Detach(worker);
  const bool reconnect = worker->role != Role::kUnknown;
  const bool standby = worker->standby && worker->slot < 0;
  if (!(role == Role::kMember && reconnect))
    worker->role = role == Role::kMember ? Role::kJoining : role;
  if (!standby && (frame["slot"] != worker->slot || frame["incarnation"] != worker->incarnation))
    parts_.journal.Fail(parts_.pods.NameOf(*worker) + " is welcomed as another: " + frame.dump());
  worker->welcomed = true;
  if (reconnect && role == Role::kJoining) worker->wants_to_enter = worker->user_waits;
  if (reconnect) RepeatToSidecar(worker);
  for (json& queued : std::exchange(worker->queued, {}))
    parts_.links.SendToSidecar(worker->stream, std::move(queued));
  if (reconnect) return;
  if (worker->role == Role::kBootstrap) {
    AskToEnter(worker);
  } else if (worker->role == Role::kJoining) {
    Enter(worker);
  }
}

// What a sidecar that has just started again may not know.
void Workers::RepeatToSidecar(const WorkerPtr& worker) {
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

void Workers::AskToEnter(const WorkerPtr& worker) {
  worker->user_waits = true;
  if (!std::exchange(worker->wants_to_enter, true)) parts_.links.SendFrom(worker, {{"t", "enter"}});
}

// The script has built its model and wants to be in a view.
void Workers::Enter(const WorkerPtr& worker) {
  parts_.time.After(parts_.random.Between(10 * kMs, 300 * kMs), [this, worker] {
    parts_.pods.ToWorker(worker, [this, worker] {
      if (!worker->ended && !worker->entered) AskToEnter(worker);
    });
  });
}

void Workers::OnView(const WorkerPtr& worker, const json& frame) {
  auto parsed = membership::ViewFromJson(frame["view"]);
  if (!parsed) return parts_.journal.Fail("a view that can't be read: " + parsed.error());
  const auto view = std::make_shared<const membership::View>(std::move(*parsed));
  parts_.invariants.Announce(view);
  const int self = frame["self"];
  const SimPod& pod = *parts_.pods[worker->pod];
  const int rank =
      view->FindRank(pod.uid, static_cast<std::uint32_t>(worker->slot), worker->incarnation);
  if (self != rank)
    parts_.journal.Fail(parts_.pods.NameOf(*worker) + " is rank " + std::to_string(rank) +
                        ", told " + frame.dump());
  if (self < 0) {
    worker->role = Role::kJoining;
    worker->wants_to_enter = worker->user_waits;
    if (worker->user_waits) parts_.links.SendFrom(worker, {{"t", "enter"}});
  }
  if (view->epoch <= std::max(worker->epoch, worker->stopped) || worker->ended) return;
  worker->epoch = view->epoch;
  if (self < 0) return Detach(worker);
  worker->given = view->epoch;
  // Everybody has what a job begins with.
  const bool begins = view->reason == membership::Reason::kBootstrap ||
                      !view->ranks[static_cast<std::size_t>(self)].joined;
  if (!worker->entered && !worker->detached && begins) worker->has_state = true;
  if (worker->has_state) worker->held = view->epoch;
  if (view->reason == membership::Reason::kBootstrap && membership::EpochNumber(view->epoch) == 1) {
    if (worker->ran != 0 || worker->entered)
      parts_.journal.Fail("I5: " + parts_.pods.NameOf(*worker) +
                          " has been in a view and is taken for a fresh one");
    worker->holds = true;
  } else if (!worker->has_state) {
    worker->holds = false;
  }
  parts_.rings.LeaveView(worker.get());
  worker->view = view;
  worker->suspected.clear();
  worker->broken.reset();
  worker->phase = Phase::kConnecting;
  parts_.rings.TickSoon(view->epoch);
}

// ---- collectives/engine

void Workers::OnArm(const WorkerPtr& worker, Epoch epoch) {
  worker->armed = std::max(worker->armed, epoch);
  if (epoch == worker->epoch && worker->phase == Phase::kActive &&
      (worker->standing || !worker->entered)) {
    parts_.calls.ReachBoundary(worker);
  }
}

// Dropped: its state is void, and its script goes on alone until its step ends.
void Workers::Detach(const WorkerPtr& worker) {
  parts_.rings.LeaveView(worker.get());
  worker->holds = false;
  worker->has_state = false;
  worker->held = worker->given = 0;
  worker->log.Trim();
  worker->done = 0;
  if (worker->epoch == 0) return;
  const bool waits = worker->standing || !worker->entered;
  worker->detached = worker->detached || worker->entered;
  worker->entered = false;
  const Micros step = waits ? 0 : parts_.random.Below(150 * kMs);
  parts_.time.After(step, [this, worker] {
    parts_.pods.ToWorker(worker, [this, worker] {
      if (worker->entered || worker->ended) return;
      worker->standing = worker->detached;
      AskToEnter(worker);
    });
  });
}

}  // namespace ringmaster::app::sim
