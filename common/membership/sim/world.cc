#include "common/membership/sim/world.h"

#include <algorithm>

namespace ringmaster::membership::sim {

namespace {

constexpr std::uint64_t kTooManyEvents = 2'000'000;

}  // namespace

World::World(const Options& options)
    : options_(options),
      random_(options.seed),
      journal_(&events_, options.trace),
      network_(&random_) {
  profile_ = options.profile != Profile::kCount
                 ? options.profile
                 : static_cast<Profile>(random_.Chance(500) ? 0 : random_.Below(6));
  pods_.reserve(128);
}

Outcome World::Run() {
  Bootstrap();
  while (!journal_.failed() && !finished_ && !events_.empty()) {
    const SimEvent event = events_.Next();
    if (++journal_.coverage().events > kTooManyEvents)
      journal_.Fail("busy: the schedule does not come to rest");
    Handle(event);
  }
  journal_.coverage().schedules = 1;
  for (const SimPod& pod : pods_) {
    if (!pod.member) continue;
    const MemberCounters c = pod.member->counters();
    journal_.coverage().campaigns += c.campaigns;
    journal_.coverage().refused += c.refused;
    journal_.coverage().by_majority += c.decided_by_majority;
    journal_.coverage().by_record += c.decided_by_record;
    journal_.coverage().by_all += c.decided_by_all;
  }
  return journal_.outcome();
}

namespace {

int DrawMembers(Random* random) {
  std::int64_t roll = random->Below(1000);
  if (roll < 40) return 1;
  if (roll < 280) return 2;
  if (roll < 480) return 3;
  if (roll < 690) return 4;
  if (roll < 820) return 5;
  if (roll < 890) return 6;
  if (roll < 950) return 7;
  if (roll < 985) return static_cast<int>(random->Between(8, 12));
  return static_cast<int>(random->Between(13, 64));
}

}  // namespace

void World::Bootstrap() {
  int members = options_.members > 0 ? options_.members : DrawMembers(&random_);
  if (profile_ == Profile::kContended && options_.members == 0) {
    members = static_cast<int>(random_.Between(2, 5));
  }
  journal_.coverage().largest = members;
  journal_.coverage().five_and_more = members >= 5 ? 1 : 0;
  job_.slots = members <= 8 && random_.Chance(200) ? 2 : 1;
  network_.Draw(profile_ == Profile::kContended);
  job_.wanted = members;
  job_.min_pods = random_.Chance(700) ? 1 : static_cast<std::uint32_t>(random_.Between(1, members));

  std::vector<Candidate> candidates;
  for (int i = 0; i < members; ++i) {
    AddPod(true);
    Candidate candidate{pods_[i].pod, {}};
    for (int s = 0; s < job_.slots; ++s) {
      candidate.workers.push_back({static_cast<std::uint32_t>(s), 1, "", "", true});
    }
    candidates.push_back(std::move(candidate));
  }
  auto first = std::make_shared<const View>(BootstrapView(std::move(candidates), job_.min_pods));
  record_.Begin(NewRecord(first));
  for (SimOperator& op : operators_) op.Read(record_);
  for (int i = 0; i < members; ++i) {
    StartSidecar(i);
    WorkersSeen(i);
    StepMember(i, ringmaster::membership::ViewDecided{first});
  }
  for (int op = 0; op < 2; ++op) {
    operators_[op].able_at = events_.now();
    events_.After(random_.Below(500 * kMs), Kind::kRecovery, 0, op);
  }
  int faults = static_cast<int>(random_.Between(1, 3) + random_.Below(members > 7 ? 3 : 6));
  Micros at = events_.now();
  for (int i = 0; i < faults; ++i) {
    // Half of the faults come shortly after the one before.
    at += random_.Chance(500) ? random_.Below(20 * kMs) : random_.Below(900 * kMs);
    events_.At(at, Kind::kFault);
  }
  events_.At(at + random_.Between(50 * kMs, 1500 * kMs), Kind::kHeal);
}

int World::AddPod(bool bootstrap) {
  int index = static_cast<int>(pods_.size());
  SimPod& pod = pods_.emplace_back();
  pod.uid = UidOf(index);
  pod.pod.uid = pod.pod.name = pod.uid;
  pod.pod.incarnation = 1;
  pod.workers.resize(job_.slots);
  for (SimWorker& worker : pod.workers) {
    worker.ready = true;
    worker.holds = bootstrap;
    worker.used = false;
    worker.step = bootstrap ? 0 : -1;
  }
  network_.AddPod();
  for (SimPod& other : pods_) other.heard.resize(pods_.size(), events_.now());
  return index;
}

bool World::PostponedByPause(const SimEvent& event) {
  int actor = -1;
  switch (event.kind) {
    case Kind::kDeliver:
    case Kind::kFromRecord:
      actor = event.b;
      break;
    case Kind::kTimer:
    case Kind::kHeartbeats:
    case Kind::kToWorker:
    case Kind::kFromWorker:
    case Kind::kWorkersSeen:
    case Kind::kReset:
    case Kind::kNotifyView:
    case Kind::kAsked:
      actor = event.a;
      break;
    default:
      return false;
  }
  if (pods_[actor].paused_until <= events_.now()) return false;
  if (event.kind == Kind::kTimer && pods_[actor].timer == event.at) {
    pods_[actor].timer = pods_[actor].paused_until;
  }
  events_.At(pods_[actor].paused_until, event.kind, event.a, event.b, event.x, event.y,
             event.command, event.message);
  return true;
}

void World::Deliver(const SimEvent& event) {
  Message message = events_.Take(event.message);
  if (event.kind == Kind::kToRecord) {
    if (network_.ReachesOperators(event.a)) AskRecord(event.b, message, event.a);
    return;
  }
  const bool from_record = event.kind == Kind::kFromRecord;
  const bool reached =
      from_record ? network_.ReachesOperators(event.b) : network_.Connected(event.a, event.b);
  if (!pods_[event.b].up || !reached) return;
  journal_.Trace([&] { return pods_[event.b].uid + " <- " + Describe(message); });
  if (from_record) {
    StepMember(event.b, RecordAnswered{std::move(message)});
  } else {
    StepMember(event.b, MessageReceived{std::move(message), ""});
  }
}

void World::OnTimer(const SimEvent& event) {
  SimPod& pod = pods_[event.a];
  // Another timer may have replaced this one, or the sidecar may be a new process.
  if (!pod.up || pod.life != event.x || pod.timer != event.at) return;
  pod.timer = -1;
  StepMember(event.a, Tick{});
  CheckNotBusy(event.a);
}

void World::Handle(const SimEvent& event) {
  if (PostponedByPause(event)) return;
  auto alive = [&](int pod) { return pods_[pod].up && pods_[pod].life == event.x; };
  switch (event.kind) {
    case Kind::kDeliver:
    case Kind::kToRecord:
    case Kind::kFromRecord:
      return Deliver(event);
    case Kind::kTimer:
      return OnTimer(event);
    case Kind::kHeartbeats:
      if (alive(event.a)) Heartbeats(event.a);
      return;
    case Kind::kToWorker:
      return OnWorkerCommand(event);
    case Kind::kFromWorker:
      return OnWorkerMessage(event);
    case Kind::kWorkersSeen:
      if (alive(event.a)) WorkersSeen(event.a);
      return;
    case Kind::kStep:
      return TryStep(event.x);
    case Kind::kFault:
      return InjectFault();
    case Kind::kStartSidecar:
      return StartSidecar(event.a);
    case Kind::kStartWorker:
      return StartWorker(event.a, event.b);
    case Kind::kReset:
      if (pods_[event.a].up) StepMember(event.a, PodSuspected{pods_[event.b].uid, "reset"});
      return;
    case Kind::kNotifyView:
      return NotifyView(event.a);
    case Kind::kHeal:
      return Heal();
    case Kind::kCheck:
      return CheckEnd();
    case Kind::kEndCut:
      if (event.a == event.b) network_.Join();
      return network_.Mend(event.a, event.b);
    case Kind::kRecovery:
      RunRecovery(event.b);
      if (event.x == 0) events_.After(500 * kMs, Kind::kRecovery, 0, event.b);
      return;
    case Kind::kAsked:
      return OnAsked(event.a, event.x, event.y != 0);
    case Kind::kRecoveryReport:
      return OnReport(event.b, event.a, events_.Report(event.message));
  }
}

void World::StepMember(int pod, const Event& event) {
  if (!pods_[pod].up || journal_.failed()) return;
  std::vector<Action> actions;
  if (!spare_.empty()) {
    actions = std::move(spare_.back());
    spare_.pop_back();
  }
  pods_[pod].member->Step(event, events_.time_point(), &actions);
  Apply(pod, &actions);
  actions.clear();
  spare_.push_back(std::move(actions));
  ArmTimer(pod);
}

void World::Apply(int pod, std::vector<Action>* actions) {
  std::uint32_t life = pods_[pod].life;
  for (Action& action : *actions) {
    if (pods_[pod].crash_after == 0) {
      pods_[pod].crash_after = -1;
      CrashSidecar(pod);
      events_.After(random_.Between(5 * kMs, 900 * kMs), Kind::kStartSidecar, pod);
    }
    if (pods_[pod].crash_after > 0) --pods_[pod].crash_after;
    if (!pods_[pod].up || pods_[pod].life != life || journal_.failed()) return;
    ApplyOne(pod, action);
  }
}

void World::ApplyOne(int pod, Action& action) {
  SimPod& self = pods_[pod];
  if (auto* persist = std::get_if<Persist>(&action)) {
    self.disk = std::move(persist->state);
  } else if (auto* send = std::get_if<Send>(&action)) {
    if (send->message.kind == MessageKind::kDecided) Announce(send->message.value);
    Post(pod, IndexOf(send->to), send->message);
  } else if (auto* ask = std::get_if<SendToRecord>(&action)) {
    if (network_.Loses()) return;
    int op = random_.Chance(700) ? 0 : 1;
    events_.After(network_.Delay(), Kind::kToRecord, pod, op, 0, 0, Command::kStop,
                  events_.Keep(std::move(ask->message)));
  } else if (auto* stop = std::get_if<StopWorkers>(&action)) {
    self.stop_wanted = std::max(self.stop_wanted, stop->epoch);
    ToWorkers(pod, Command::kStop, stop->epoch);
    events_.After(0, Kind::kWorkersSeen, pod, 0, self.life);
  } else if (auto* arm = std::get_if<ArmWorkers>(&action)) {
    self.arm_wanted = arm->epoch;
    ToWorkers(pod, Command::kArm, arm->epoch);
  } else if (auto* install = std::get_if<InstallView>(&action)) {
    Announce(install->view);
    journal_.Trace([&] { return self.uid + " installs " + Describe(*install->view); });
    ToWorkers(pod, Command::kView, install->view->epoch);
  } else if (std::get_if<LeftByPlan>(&action)) {
    for (int s = 0; s < job_.slots; ++s) self.workers[s].alive = false;
    events_.After(kMs, Kind::kWorkersSeen, pod, 0, self.life);
    journal_.Trace([&] { return self.uid + " has left by plan"; });
  } else if (auto* report = std::get_if<ReportToOperator>(&action)) {
    for (int op = 0; op < 2; ++op) {
      if (network_.Loses()) continue;
      events_.After(network_.Delay(), Kind::kRecoveryReport, pod, op, 0, 0, Command::kStop,
                    events_.KeepReport(report->report));
    }
  } else if (auto* log = std::get_if<Log>(&action)) {
    journal_.Trace([&] { return self.uid + ": " + log->text; });
  }
}

void World::Post(int from, int to, const Message& message) {
  ++journal_.coverage().messages;
  if (network_.Loses()) {
    ++journal_.coverage().lost;
    return;
  }
  bool again = network_.Repeats();
  for (int i = 0; i < (again ? 2 : 1); ++i) {
    events_.After(network_.Delay(), Kind::kDeliver, from, to, 0, 0, Command::kStop,
                  events_.Keep(Message(message)));
  }
  journal_.coverage().repeated += again ? 1 : 0;
}

// After a Tick the member's next deadline must be later: a deadline that has passed and stays would
// make the owner's loop spin.
void World::CheckNotBusy(int pod) {
  if (!pods_[pod].up) return;
  std::optional<TimePoint> next = pods_[pod].member->NextDeadline();
  if (next && *next <= events_.time_point())
    journal_.Fail("busy: " + pods_[pod].uid + " does not act on its deadline");
}

void World::ArmTimer(int pod) {
  SimPod& self = pods_[pod];
  if (!self.up) return;
  std::optional<TimePoint> next = self.member->NextDeadline();
  if (!next) {
    self.timer = -1;
    return;
  }
  Micros at =
      std::chrono::duration_cast<std::chrono::microseconds>(next->time_since_epoch()).count();
  at = std::max(at + 1, events_.now() + 1);
  if (self.timer >= 0 && self.timer <= at && self.timer > events_.now()) return;
  self.timer = at;
  events_.At(at, Kind::kTimer, pod, 0, self.life);
}

void World::Heartbeats(int pod) {
  SimPod& self = pods_[pod];
  const ViewPtr view = self.member->current();
  std::uint32_t life = self.life;
  if (self.member->done()) {
    self.gone = true;
    ProveLater(pod, 900);
    CrashSidecar(pod);
    return;
  }
  for (const SimWorker& worker : self.workers) {
    bool ran =
        view && worker.alive && worker.installed == view->epoch && truth_.Of(view->epoch).ran;
    if (ran) StepMember(pod, FirstOperationDone{view->epoch});
    if (!self.up || self.life != life) return;
  }
  for (std::size_t i = 0; view && i < view->pods.size(); ++i) {
    int other = IndexOf(view->pods[i].uid);
    if (other == pod) continue;
    bool heard = pods_[other].up && pods_[other].paused_until <= events_.now() &&
                 network_.Connected(pod, other);
    if (heard && !network_.Loses()) {
      self.heard[other] = events_.now();
      StepMember(pod, PodHeard{pods_[other].uid, EpochOf(pods_[other].member->current())});
    } else if (events_.now() - self.heard[other] > 1000 * kMs) {
      StepMember(pod, PodSuspected{pods_[other].uid, "silent"});
    }
    if (!self.up || self.life != life) return;
  }
  events_.After(250 * kMs, Kind::kHeartbeats, pod, 0, life);
}

void World::StartSidecar(int pod) {
  SimPod& self = pods_[pod];
  if (self.gone || self.up) return;
  Config config;
  config.self = self.pod;
  config.min_pods = job_.min_pods;
  config.seed = options_.seed * 131 + pod;
  config.without = options_.without;
  PersistentState state;
  if (self.disk) {
    state = *self.disk;
  } else {
    state.incarnation = self.next_incarnation++;
    if (options_.without.Has(Clause::kLostFileJoins)) state.incarnation = 1;
    self.pod.incarnation = state.incarnation;
    self.disk = state;
    // The pod registers anew, so the operators forget what its former incarnation has reported.
    for (SimOperator& op : operators_) op.reports.erase(pod);
  }
  if (self.member) {
    const MemberCounters c = self.member->counters();
    journal_.coverage().campaigns += c.campaigns;
    journal_.coverage().refused += c.refused;
    journal_.coverage().by_majority += c.decided_by_majority;
    journal_.coverage().by_record += c.decided_by_record;
    journal_.coverage().by_all += c.decided_by_all;
  }
  self.member = std::make_unique<Member>(std::move(config), std::move(state));
  self.up = self.started = true;
  self.timer = -1;
  self.stop_wanted = self.arm_wanted = 0;
  std::fill(self.heard.begin(), self.heard.end(), events_.now());
  journal_.Trace([&] { return self.uid + " sidecar starts"; });
  StepMember(pod, Started{});
  if (self.leaving) StepMember(pod, DrainRequested{{self.uid}, std::nullopt});
  events_.After(random_.Between(1, 5 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
  events_.After(random_.Below(250 * kMs), Kind::kHeartbeats, pod, 0, self.life);
  events_.After(random_.Below(20 * kMs), Kind::kNotifyView, pod, 0, self.life);
}

void World::CrashSidecar(int pod) {
  SimPod& self = pods_[pod];
  if (!self.up) return;
  self.up = false;
  ++self.life;
  self.timer = -1;
  journal_.Trace([&] { return self.uid + " sidecar dies"; });
}

}  // namespace ringmaster::membership::sim
