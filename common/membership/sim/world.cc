#include "common/membership/sim/world.h"

#include <algorithm>

namespace ringmaster::membership::sim {

namespace {

constexpr std::uint64_t kTooManyEvents = 2'000'000;

}  // namespace

World::World(const Options& options) : options_(options), random_(options.seed) {
  profile_ = options.profile != Profile::kCount
                 ? options.profile
                 : static_cast<Profile>(random_.Chance(500) ? 0 : random_.Below(6));
  pods_.reserve(128);
}

Outcome World::Run() {
  Bootstrap();
  while (violation_.empty() && !finished_ && !queue_.empty()) {
    SimEvent event = queue_.top();
    queue_.pop();
    now_ = event.at;
    if (++coverage_.events > kTooManyEvents) Fail("busy: the schedule does not come to rest");
    Handle(event);
  }
  coverage_.schedules = 1;
  for (const SimPod& pod : pods_) {
    if (!pod.member) continue;
    const MemberCounters c = pod.member->counters();
    coverage_.campaigns += c.campaigns;
    coverage_.refused += c.refused;
    coverage_.by_majority += c.decided_by_majority;
    coverage_.by_record += c.decided_by_record;
    coverage_.by_all += c.decided_by_all;
  }
  return {violation_, coverage_};
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
  coverage_.largest = members;
  coverage_.five_and_more = members >= 5 ? 1 : 0;
  slots_ = members <= 8 && random_.Chance(200) ? 2 : 1;
  loss_ = random_.Chance(500) ? static_cast<int>(random_.Below(200)) : 0;
  repeat_ = static_cast<int>(random_.Below(100));
  slow_ = random_.Chance(500) ? static_cast<int>(random_.Below(200)) : 5;
  if (profile_ == Profile::kContended) slow_ = static_cast<int>(random_.Between(100, 400));
  fast_detection_ = random_.Chance(500) ? 1000 : 300;
  wanted_ = members;
  min_pods_ = random_.Chance(700) ? 1 : static_cast<std::uint32_t>(random_.Between(1, members));

  std::vector<Candidate> candidates;
  for (int i = 0; i < members; ++i) {
    AddPod(true);
    Candidate candidate{pods_[i].pod, {}};
    for (int s = 0; s < slots_; ++s) {
      candidate.workers.push_back({static_cast<std::uint32_t>(s), 1, "", "", true});
    }
    candidates.push_back(std::move(candidate));
  }
  auto first = std::make_shared<const View>(BootstrapView(std::move(candidates), min_pods_));
  record_ = NewRecord(first);
  for (SimOperator& op : operators_) op.state = record_, op.version = record_version_;
  for (int i = 0; i < members; ++i) {
    StartSidecar(i);
    WorkersSeen(i);
    StepMember(i, ringmaster::membership::ViewDecided{first});
  }
  for (int op = 0; op < 2; ++op) {
    operators_[op].able_at = now_;
    At(now_ + random_.Below(500 * kMs), Kind::kRecovery, 0, op);
  }
  int faults = static_cast<int>(random_.Between(1, 3) + random_.Below(members > 7 ? 3 : 6));
  Micros at = now_;
  for (int i = 0; i < faults; ++i) {
    // Half of the faults come shortly after the one before.
    at += random_.Chance(500) ? random_.Below(20 * kMs) : random_.Below(900 * kMs);
    At(at, Kind::kFault);
  }
  At(at + random_.Between(50 * kMs, 1500 * kMs), Kind::kHeal);
}

int World::AddPod(bool bootstrap) {
  int index = static_cast<int>(pods_.size());
  SimPod& pod = pods_.emplace_back();
  pod.uid = "p" + std::to_string(index);
  pod.pod.uid = pod.pod.name = pod.uid;
  pod.pod.incarnation = 1;
  pod.workers.resize(slots_);
  for (SimWorker& worker : pod.workers) {
    worker.ready = true;
    worker.holds = bootstrap;
    worker.used = false;
    worker.step = bootstrap ? 0 : -1;
  }
  side_.push_back(0);
  for (auto& row : cut_) row.push_back(0);
  cut_.emplace_back(pods_.size(), 0);
  for (SimPod& other : pods_) other.heard.resize(pods_.size(), now_);
  return index;
}

void World::At(Micros at, Kind kind, int a, int b, std::uint64_t x, std::uint64_t y,
               Command command, std::uint32_t message) {
  queue_.push({at, ++order_, kind, command, static_cast<std::int16_t>(a),
               static_cast<std::int16_t>(b), message, x, y});
}

std::uint32_t World::Keep(Message&& message) {
  if (free_messages_.empty()) {
    messages_.push_back(std::move(message));
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  std::uint32_t index = free_messages_.back();
  free_messages_.pop_back();
  messages_[index] = std::move(message);
  return index;
}

Message World::Take(std::uint32_t index) {
  free_messages_.push_back(index);
  return std::move(messages_[index]);
}

int World::IndexOf(const std::string& uid) const {
  int index = 0;
  for (std::size_t i = 1; i < uid.size(); ++i) index = index * 10 + (uid[i] - '0');
  return index;
}

bool World::Connected(int a, int b) const { return side_[a] == side_[b] && !cut_[a][b]; }

Micros World::Delay() {
  if (random_.Chance(slow_)) return random_.Below(400 * kMs);
  return random_.Between(100, 3 * kMs);
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
  if (pods_[actor].paused_until <= now_) return false;
  if (event.kind == Kind::kTimer && pods_[actor].timer == event.at) {
    pods_[actor].timer = pods_[actor].paused_until;
  }
  At(pods_[actor].paused_until, event.kind, event.a, event.b, event.x, event.y, event.command,
     event.message);
  return true;
}

void World::Deliver(const SimEvent& event) {
  Message message = Take(event.message);
  if (event.kind == Kind::kToRecord) {
    if (ReachesOperators(event.a)) AskRecord(event.b, message, event.a);
    return;
  }
  const bool from_record = event.kind == Kind::kFromRecord;
  const bool reached = from_record ? ReachesOperators(event.b) : Connected(event.a, event.b);
  if (!pods_[event.b].up || !reached) return;
  Trace([&] { return pods_[event.b].uid + " <- " + Describe(message); });
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

void World::EndCut(int a, int b) {
  if (a == b) {
    std::fill(side_.begin(), side_.end(), 0);
    operators_apart_ = false;
  }
  cut_[a][b] = cut_[b][a] = 0;
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
      return EndCut(event.a, event.b);
    case Kind::kRecovery:
      RunRecovery(event.b);
      if (event.x == 0) At(now_ + 500 * kMs, Kind::kRecovery, 0, event.b);
      return;
    case Kind::kAsked:
      return OnAsked(event.a, event.x, event.y != 0);
    case Kind::kRecoveryReport:
      return OnReport(event.b, event.a, reports_[event.message]);
  }
}

void World::StepMember(int pod, const Event& event) {
  if (!pods_[pod].up || !violation_.empty()) return;
  std::vector<Action> actions;
  if (!spare_.empty()) {
    actions = std::move(spare_.back());
    spare_.pop_back();
  }
  pods_[pod].member->Step(event, Now(), &actions);
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
      At(now_ + random_.Between(5 * kMs, 900 * kMs), Kind::kStartSidecar, pod);
    }
    if (pods_[pod].crash_after > 0) --pods_[pod].crash_after;
    if (!pods_[pod].up || pods_[pod].life != life || !violation_.empty()) return;
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
    if (random_.Chance(loss_)) return;
    int op = random_.Chance(700) ? 0 : 1;
    At(now_ + Delay(), Kind::kToRecord, pod, op, 0, 0, Command::kStop,
       Keep(std::move(ask->message)));
  } else if (auto* stop = std::get_if<StopWorkers>(&action)) {
    self.stop_wanted = std::max(self.stop_wanted, stop->epoch);
    ToWorkers(pod, Command::kStop, stop->epoch);
    At(now_, Kind::kWorkersSeen, pod, 0, self.life);
  } else if (auto* arm = std::get_if<ArmWorkers>(&action)) {
    self.arm_wanted = arm->epoch;
    ToWorkers(pod, Command::kArm, arm->epoch);
  } else if (auto* install = std::get_if<InstallView>(&action)) {
    Announce(install->view);
    Trace([&] { return self.uid + " installs " + Describe(*install->view); });
    ToWorkers(pod, Command::kView, install->view->epoch);
  } else if (std::get_if<LeftByPlan>(&action)) {
    for (int s = 0; s < slots_; ++s) self.workers[s].alive = false;
    At(now_ + kMs, Kind::kWorkersSeen, pod, 0, self.life);
    Trace([&] { return self.uid + " has left by plan"; });
  } else if (auto* report = std::get_if<ReportToOperator>(&action)) {
    for (int op = 0; op < 2; ++op) {
      if (random_.Chance(loss_)) continue;
      reports_.push_back(report->report);
      At(now_ + Delay(), Kind::kRecoveryReport, pod, op, 0, 0, Command::kStop,
         static_cast<std::uint32_t>(reports_.size() - 1));
    }
  } else if (auto* log = std::get_if<Log>(&action)) {
    Trace([&] { return self.uid + ": " + log->text; });
  }
}

void World::Post(int from, int to, const Message& message) {
  ++coverage_.messages;
  if (random_.Chance(loss_)) {
    ++coverage_.lost;
    return;
  }
  bool again = random_.Chance(repeat_);
  for (int i = 0; i < (again ? 2 : 1); ++i) {
    At(now_ + Delay(), Kind::kDeliver, from, to, 0, 0, Command::kStop, Keep(Message(message)));
  }
  coverage_.repeated += again ? 1 : 0;
}

// After a Tick the member's next deadline must be later: a deadline that has passed and stays would
// make the owner's loop spin.
void World::CheckNotBusy(int pod) {
  if (!pods_[pod].up) return;
  std::optional<TimePoint> next = pods_[pod].member->NextDeadline();
  if (next && *next <= Now()) Fail("busy: " + pods_[pod].uid + " does not act on its deadline");
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
  at = std::max(at + 1, now_ + 1);
  if (self.timer >= 0 && self.timer <= at && self.timer > now_) return;
  self.timer = at;
  At(at, Kind::kTimer, pod, 0, self.life);
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
    bool ran = view && worker.alive && worker.installed == view->epoch && Of(view->epoch).ran;
    if (ran) StepMember(pod, FirstOperationDone{view->epoch});
    if (!self.up || self.life != life) return;
  }
  for (std::size_t i = 0; view && i < view->pods.size(); ++i) {
    int other = IndexOf(view->pods[i].uid);
    if (other == pod) continue;
    bool heard = pods_[other].up && pods_[other].paused_until <= now_ && Connected(pod, other);
    if (heard && !random_.Chance(loss_)) {
      self.heard[other] = now_;
      StepMember(pod, PodHeard{pods_[other].uid, EpochOf(pods_[other].member->current())});
    } else if (now_ - self.heard[other] > 1000 * kMs) {
      StepMember(pod, PodSuspected{pods_[other].uid, "silent"});
    }
    if (!self.up || self.life != life) return;
  }
  At(now_ + 250 * kMs, Kind::kHeartbeats, pod, 0, life);
}

void World::StartSidecar(int pod) {
  SimPod& self = pods_[pod];
  if (self.gone || self.up) return;
  Config config;
  config.self = self.pod;
  config.min_pods = min_pods_;
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
    coverage_.campaigns += c.campaigns;
    coverage_.refused += c.refused;
    coverage_.by_majority += c.decided_by_majority;
    coverage_.by_record += c.decided_by_record;
    coverage_.by_all += c.decided_by_all;
  }
  self.member = std::make_unique<Member>(std::move(config), std::move(state));
  self.up = self.started = true;
  self.timer = -1;
  self.stop_wanted = self.arm_wanted = 0;
  std::fill(self.heard.begin(), self.heard.end(), now_);
  Trace([&] { return self.uid + " sidecar starts"; });
  StepMember(pod, Started{});
  if (self.leaving) StepMember(pod, DrainRequested{{self.uid}, std::nullopt});
  At(now_ + random_.Between(1, 5 * kMs), Kind::kWorkersSeen, pod, 0, self.life);
  At(now_ + random_.Below(250 * kMs), Kind::kHeartbeats, pod, 0, self.life);
  At(now_ + random_.Below(20 * kMs), Kind::kNotifyView, pod, 0, self.life);
}

void World::CrashSidecar(int pod) {
  SimPod& self = pods_[pod];
  if (!self.up) return;
  self.up = false;
  ++self.life;
  self.timer = -1;
  Trace([&] { return self.uid + " sidecar dies"; });
}

}  // namespace ringmaster::membership::sim
