#include "common/membership/sim/sidecars.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership::sim {

int Sidecars::AddPod(bool bootstrap) {
  int index = static_cast<int>(parts_.pods.size());
  SimPod& pod = parts_.pods.emplace_back();
  pod.uid = UidOf(index);
  pod.pod.uid = pod.pod.name = pod.uid;
  pod.pod.incarnation = 1;
  pod.workers.resize(parts_.job.slots);
  for (SimWorker& worker : pod.workers) {
    worker.ready = true;
    worker.holds = bootstrap;
    worker.used = false;
    worker.step = bootstrap ? 0 : -1;
  }
  parts_.network.AddPod();
  for (SimPod& other : parts_.pods) other.heard.resize(parts_.pods.size(), parts_.events.now());
  return index;
}

void Sidecars::OnMessage(const SimEvent& event) {
  Message message = parts_.events.Take(event.message);
  const bool from_record = event.kind == Kind::kFromRecord;
  const bool reached = from_record ? parts_.network.ReachesOperators(event.b)
                                   : parts_.network.Connected(event.a, event.b);
  if (!parts_.pods[event.b].up || !reached) return;
  parts_.journal.Trace([&] { return parts_.pods[event.b].uid + " <- " + Describe(message); });
  if (from_record) {
    Step(event.b, RecordAnswered{std::move(message)});
  } else {
    Step(event.b, MessageReceived{std::move(message), ""});
  }
}

void Sidecars::OnTimer(const SimEvent& event) {
  SimPod& pod = parts_.pods[event.a];
  // Another timer may have replaced this one, or the sidecar may be a new process.
  if (!pod.up || pod.life != event.x || pod.timer != event.at) return;
  pod.timer = -1;
  Step(event.a, Tick{});
  CheckNotBusy(event.a);
}

void Sidecars::Step(int pod, const Event& event) {
  if (!parts_.pods[pod].up || parts_.journal.failed()) return;
  std::vector<Action> actions;
  if (!spare_.empty()) {
    actions = std::move(spare_.back());
    spare_.pop_back();
  }
  parts_.pods[pod].member->Step(event, parts_.events.time_point(), &actions);
  Apply(pod, &actions);
  actions.clear();
  spare_.push_back(std::move(actions));
  ArmTimer(pod);
}

void Sidecars::Apply(int pod, std::vector<Action>* actions) {
  std::uint32_t life = parts_.pods[pod].life;
  for (Action& action : *actions) {
    if (parts_.pods[pod].crash_after == 0) {
      parts_.pods[pod].crash_after = -1;
      Crash(pod);
      parts_.events.After(parts_.random.Between(5 * kMs, 900 * kMs), Kind::kStartSidecar, pod);
    }
    if (parts_.pods[pod].crash_after > 0) --parts_.pods[pod].crash_after;
    if (!parts_.pods[pod].up || parts_.pods[pod].life != life || parts_.journal.failed()) return;
    ApplyOne(pod, action);
  }
}

void Sidecars::ApplyOne(int pod, Action& action) {
  SimPod& self = parts_.pods[pod];
  if (auto* persist = std::get_if<Persist>(&action)) {
    self.disk = std::move(persist->state);
  } else if (auto* send = std::get_if<Send>(&action)) {
    if (send->message.kind == MessageKind::kDecided)
      parts_.invariants.Announce(send->message.value);
    Post(pod, IndexOf(send->to), send->message);
  } else if (auto* ask = std::get_if<SendToRecord>(&action)) {
    if (parts_.network.Loses()) return;
    int op = parts_.random.Chance(700) ? 0 : 1;
    parts_.events.After(parts_.network.Delay(), Kind::kToRecord, pod, op, 0, 0, Command::kStop,
                        parts_.events.Keep(std::move(ask->message)));
  } else if (auto* stop = std::get_if<StopWorkers>(&action)) {
    self.stop_wanted = std::max(self.stop_wanted, stop->epoch);
    parts_.workers.Tell(pod, Command::kStop, stop->epoch);
    parts_.events.After(0, Kind::kWorkersSeen, pod, 0, self.life);
  } else if (auto* arm = std::get_if<ArmWorkers>(&action)) {
    self.arm_wanted = arm->epoch;
    parts_.workers.Tell(pod, Command::kArm, arm->epoch);
  } else if (auto* install = std::get_if<InstallView>(&action)) {
    parts_.invariants.Announce(install->view);
    parts_.journal.Trace([&] { return self.uid + " installs " + Describe(*install->view); });
    parts_.workers.Tell(pod, Command::kView, install->view->epoch);
  } else if (std::get_if<LeftByPlan>(&action)) {
    for (int s = 0; s < parts_.job.slots; ++s) self.workers[s].alive = false;
    parts_.events.After(kMs, Kind::kWorkersSeen, pod, 0, self.life);
    parts_.journal.Trace([&] { return self.uid + " has left by plan"; });
  } else if (auto* report = std::get_if<ReportToOperator>(&action)) {
    for (int op = 0; op < 2; ++op) {
      if (parts_.network.Loses()) continue;
      parts_.events.After(parts_.network.Delay(), Kind::kRecoveryReport, pod, op, 0, 0,
                          Command::kStop, parts_.events.KeepReport(report->report));
    }
  } else if (auto* log = std::get_if<Log>(&action)) {
    parts_.journal.Trace([&] { return self.uid + ": " + log->text; });
  }
}

void Sidecars::Post(int from, int to, const Message& message) {
  ++parts_.journal.coverage().messages;
  if (parts_.network.Loses()) {
    ++parts_.journal.coverage().lost;
    return;
  }
  bool again = parts_.network.Repeats();
  for (int i = 0; i < (again ? 2 : 1); ++i) {
    parts_.events.After(parts_.network.Delay(), Kind::kDeliver, from, to, 0, 0, Command::kStop,
                        parts_.events.Keep(Message(message)));
  }
  parts_.journal.coverage().repeated += again ? 1 : 0;
}

// After a Tick the member's next deadline must be later: a deadline that has passed and stays would
// make the owner's loop spin.
void Sidecars::CheckNotBusy(int pod) {
  if (!parts_.pods[pod].up) return;
  std::optional<TimePoint> next = parts_.pods[pod].member->NextDeadline();
  if (next && *next <= parts_.events.time_point())
    parts_.journal.Fail("busy: " + parts_.pods[pod].uid + " does not act on its deadline");
}

void Sidecars::ArmTimer(int pod) {
  SimPod& self = parts_.pods[pod];
  if (!self.up) return;
  std::optional<TimePoint> next = self.member->NextDeadline();
  if (!next) {
    self.timer = -1;
    return;
  }
  Micros at =
      std::chrono::duration_cast<std::chrono::microseconds>(next->time_since_epoch()).count();
  at = std::max(at + 1, parts_.events.now() + 1);
  if (self.timer >= 0 && self.timer <= at && self.timer > parts_.events.now()) return;
  self.timer = at;
  parts_.events.At(at, Kind::kTimer, pod, 0, self.life);
}

void Sidecars::Heartbeats(int pod) {
  SimPod& self = parts_.pods[pod];
  const ViewPtr view = self.member->current();
  std::uint32_t life = self.life;
  if (self.member->done()) {
    self.gone = true;
    self.ProveLater(900, parts_.events.now(), &parts_.random);
    Crash(pod);
    return;
  }
  for (const SimWorker& worker : self.workers) {
    bool ran =
        view && worker.alive && worker.installed == view->epoch && parts_.truth.Of(view->epoch).ran;
    if (ran) Step(pod, FirstOperationDone{view->epoch});
    if (!self.up || self.life != life) return;
  }
  for (std::size_t i = 0; view && i < view->pods.size(); ++i) {
    int other = IndexOf(view->pods[i].uid);
    if (other == pod) continue;
    bool heard = parts_.pods[other].up && parts_.pods[other].paused_until <= parts_.events.now() &&
                 parts_.network.Connected(pod, other);
    if (heard && !parts_.network.Loses()) {
      self.heard[other] = parts_.events.now();
      Step(pod, PodHeard{parts_.pods[other].uid, EpochOf(parts_.pods[other].member->current())});
    } else if (parts_.events.now() - self.heard[other] > 1000 * kMs) {
      Step(pod, PodSuspected{parts_.pods[other].uid, "silent"});
    }
    if (!self.up || self.life != life) return;
  }
  parts_.events.After(250 * kMs, Kind::kHeartbeats, pod, 0, life);
}

void Sidecars::Start(int pod) {
  SimPod& self = parts_.pods[pod];
  if (self.gone || self.up) return;
  Config config;
  config.self = self.pod;
  config.sizes = parts_.job.Sizes();
  config.seed = parts_.options.seed * 131 + pod;
  config.without = parts_.options.without;
  PersistentState state;
  if (self.disk) {
    state = *self.disk;
  } else {
    state.incarnation = self.next_incarnation++;
    if (parts_.options.without.Has(Clause::kLostFileJoins)) state.incarnation = 1;
    self.pod.incarnation = state.incarnation;
    self.disk = state;
    parts_.registers(pod);
  }
  if (self.member) parts_.journal.coverage().Add(self.member->counters());
  self.member = std::make_unique<Member>(std::move(config), std::move(state));
  self.up = self.started = true;
  self.timer = -1;
  self.stop_wanted = self.arm_wanted = 0;
  std::fill(self.heard.begin(), self.heard.end(), parts_.events.now());
  parts_.journal.Trace([&] { return self.uid + " sidecar starts"; });
  Step(pod, Started{});
  if (self.leaving) Step(pod, DrainRequested{{self.uid}, std::nullopt});
  parts_.events.After(parts_.random.Between(1, 5 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
  parts_.events.After(parts_.random.Below(250 * kMs), Kind::kHeartbeats, pod, 0, self.life);
  parts_.events.After(parts_.random.Below(20 * kMs), Kind::kNotifyView, pod, 0, self.life);
}

void Sidecars::Crash(int pod) {
  SimPod& self = parts_.pods[pod];
  if (!self.up) return;
  self.up = false;
  ++self.life;
  self.timer = -1;
  parts_.journal.Trace([&] { return self.uid + " sidecar dies"; });
}

}  // namespace ringmaster::membership::sim
