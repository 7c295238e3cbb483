#include "tests/sim/world.h"

#include <algorithm>
#include <utility>

#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app::sim {
namespace {

constexpr std::uint64_t kTooManyEvents = 400'000;
constexpr int kWakesInVain = 3;

int DrawPods(Random* random) {
  const auto roll = random->Below(100);
  if (roll < 8) return 1;
  if (roll < 35) return 2;
  if (roll < 65) return 3;
  if (roll < 85) return 4;
  return static_cast<int>(random->Between(5, 6));
}

}  // namespace

World::World(const Options& options)
    : options_(options),
      random_(options.seed),
      metrics_(std::make_unique<health::Metrics>("ns", "job", "pod")) {}

World::~World() = default;

Outcome World::Run() {
  Begin();
  while (violation_.empty() && !over_ && !time_.empty()) {
    if (++coverage_.events > kTooManyEvents) Fail("busy: the schedule does not come to rest");
    time_.RunNext();
  }
  coverage_.schedules = 1;
  return {violation_, coverage_};
}

void World::Begin() {
  const int pods = options_.pods > 0       ? options_.pods
                   : options_.at_operators ? static_cast<int>(random_.Between(2, 4))
                                           : DrawPods(&random_);
  slots_ = options_.slots > 0 ? options_.slots : (random_.Chance(300) ? 2 : 1);
  standbys_ = random_.Chance(300) ? 1 : 0;
  loss_ = random_.Chance(400) ? static_cast<int>(random_.Below(150)) : 0;
  repeat_ = static_cast<int>(random_.Below(80));
  slow_ = random_.Chance(400) ? static_cast<int>(random_.Below(150)) : 5;
  wanted_ = pods;
  min_pods_ = random_.Chance(700) ? 1 : static_cast<std::uint32_t>(random_.Between(1, pods));
  MakeJob();
  StartOperator();
  faults_left_ = static_cast<int>(random_.Between(1, 12));
  DrawProgram();
  if (random_.Chance(150)) finish_at_ = random_.Between(5, 150);
  time_.After(random_.Between(300 * kMs, 2 * kSecond), [this] { InjectFault(); });
}

// The script of the job: what it does in a step, one by one or all of it at once.
void World::DrawProgram() {
  for (auto n = random_.Between(1, 3); n > 0; --n) {
    const bool own = random_.Chance(250);
    program_.push_back(own ? engine::Kind::kReducescatter : engine::Kind::kAllreduce);
  }
  program_.push_back(engine::Kind::kStepEnd);
  together_ = random_.Chance(500);
}

int World::IndexOf(const std::string& uid) const { return std::stoi(uid.substr(1)); }

// ---- The sidecar

void World::StartSidecar(int index) {
  SimPod& pod = *pods_[index];
  if (pod.gone || !pod.placed || pod.agent != nullptr || !pod.starts_again) return;
  membership::PersistentState state;
  if (pod.disk) {
    state = *pod.disk;
  } else {
    state.incarnation = ++pod.newest_incarnation;
    pod.disk = state;
  }
  membership::Pod self;
  self.uid = pod.uid;
  self.name = pod.name;
  self.incarnation = state.incarnation;
  self.node = "n-" + std::to_string(index);
  self.address = self.heartbeat = self.http = pod.uid + ":1";
  SidecarOptions options;
  options.job_namespace = "default";
  options.job_name = options.job_uid = "job";
  options.pod_name = self.name;
  options.pod_uid = pod.uid;
  options.operator_target = "operator";
  options.slots = slots_;
  options.grace = std::chrono::seconds(8);
  options.init_timeout = std::chrono::seconds(120);
  options.without = options_.without;
  Trace([&] {
    return pod.uid + " sidecar starts, incarnation " + std::to_string(state.incarnation);
  });
  const std::uint32_t life = ++pod.life;
  pod.crashed = pod.timer_set = false;
  pod.crash_after = -1;
  pod.woken_in_vain = 0;
  pod.watched.clear();
  pod.news = membership::EpochOf(state.view);
  OpenSession(index);
  pod.agent =
      std::make_unique<Agent>(options, self, std::move(state), Outputs(index), metrics_.get());
  Call(index, [](Agent& agent) { agent.Start(); });
  time_.After(random_.Below(250 * kMs), [this, index, life] { Beat(index, life); });
  time_.After(random_.Below(100 * kMs), [this, index, life] {
    DialOperator(index, life);
    if (pods_[index]->life == life) OperatorPoll(index);
  });
  if (!std::exchange(pod.launcher.begun, true)) {
    for (int slot = 0; slot < slots_; ++slot) StartWorker(index, slot);
    if (standbys_ > 0) StartStandby(index);
    LauncherConnect(index);
  }
}

void World::CrashSidecar(int index, const std::string& why) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr) return;
  Trace([&] { return pod.uid + " sidecar dies: " + why; });
  pod.agent.reset();
  pod.session.reset();
  ++pod.life;
  pod.asleep.clear();
  pod.paused_until = 0;
  std::vector<std::uint64_t> broken;
  for (const auto& [id, stream] : streams_) {
    if (stream.pod == index) broken.push_back(id);
  }
  for (const std::uint64_t id : broken) CloseBySidecar(id);
  OperatorLoses(pod.to_operator.number, ReachesOperator(index) && !pod.gone);
  pod.to_operator = OperatorStream();
  NoticeDeath(index);
}

bool World::Output(int index) {
  SimPod& pod = *pods_[index];
  if (pod.crashed) return false;
  if (pod.crash_after >= 0 && pod.crash_after-- == 0) pod.crashed = true;
  return !pod.crashed;
}

void World::ToAgent(int index, std::uint32_t life, std::function<void(Agent&)> work) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr || pod.life != life) return;
  if (Asleep(pod)) {
    pod.asleep.push_back(
        [this, index, life, work = std::move(work)] { ToAgent(index, life, work); });
    return;
  }
  Call(index, work);
}

void World::Call(int index, const std::function<void(Agent&)>& work) {
  SimPod& pod = *pods_[index];
  if (!pod.agent->Done()) work(*pod.agent);
  if (pod.crashed) return CrashSidecar(index, "in the middle of what it did");
  if (!pod.agent->Done()) return Schedule(index);
  if (pod.agent->exit_code() != 0) {
    CrashSidecar(index, "it could not store its state");
    time_.After(random_.Between(50 * kMs, kSecond), [this, index] { StartSidecar(index); });
    return;
  }
  time_.After(0, [this, index] { KillPod(index, "its sidecar has ended"); });
}

Micros World::Local(const SimPod& pod) const {
  return time_.now() + time_.now() / 1'000'000 * pod.drift_ppm - pod.stood_still;
}

void World::Schedule(int index) {
  SimPod& pod = *pods_[index];
  const Micros wake = std::chrono::duration_cast<std::chrono::microseconds>(
                          pod.agent->NextWake().time_since_epoch())
                          .count();
  if (pod.timer_set && wake >= pod.wake) return;
  pod.timer_set = true;
  pod.wake = wake;
  const Micros now = Local(pod);
  if (wake > now) pod.woken_in_vain = 0;
  if (wake <= now && ++pod.woken_in_vain > kWakesInVain)
    Fail("busy: " + pod.uid + " wants to be woken in the past, again and again");
  const std::uint64_t timer = ++pod.timer;
  // A clock that is slower gets there later.
  const Micros delay = std::max<Micros>(wake - now, 0);
  time_.After(delay + delay / 200 + 1, [this, index, timer] { OnTimer(index, timer); });
}

void World::OnTimer(int index, std::uint64_t timer) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr || pod.timer != timer) return;
  ToAgent(index, pod.life, [this, index](Agent& agent) {
    pods_[index]->timer_set = false;
    agent.Tick();
  });
}

// ---- What pauses

bool World::Asleep(const SimPod& pod) const {
  return std::max(pod.paused_until, pod.machine_until) > time_.now();
}

void World::Pause(int index, Micros duration, bool machine) {
  SimPod& pod = *pods_[index];
  if (Asleep(pod)) return;
  (machine ? pod.machine_until : pod.paused_until) = time_.now() + duration;
  const Micros stands_still = machine && random_.Chance(500) ? duration : 0;
  time_.After(duration, [this, index, stands_still] { WakeUp(index, stands_still); });
}

// What is ready when a process wakes is taken in any order: timers may come before sockets.
void World::WakeUp(int index, Micros stands_still) {
  SimPod& pod = *pods_[index];
  pod.stood_still += stands_still;
  for (const Child& child : std::vector<Child>(pod.launcher.children)) Thaw(child.worker);
  auto ready = std::exchange(pod.asleep, {});
  if (pod.agent != nullptr && random_.Chance(500)) {
    ToAgent(index, pod.life, [](Agent& agent) { agent.Tick(); });
  }
  for (const auto& work : ready) work();
}

// ---- What the agent does outside

AgentOutputs World::Outputs(int index) {
  AgentOutputs outputs;
  outputs.clock.now = [this, index] {
    return SteadyTime(std::chrono::microseconds(Local(*pods_[index])));
  };
  outputs.clock.unix_ms = [this, index] {
    return kUnixMs + (time_.now() + pods_[index]->wall_step) / kMs;
  };
  outputs.persist =
      [this, index](const membership::PersistentState& state) -> tl::expected<void, std::string> {
    SimPod& pod = *pods_[index];
    if (!Output(index)) return {};
    if (std::exchange(pod.disk_fails, false)) return tl::unexpected(std::string("no space"));
    CheckPromise(index, state);
    pod.disk = state;
    return {};
  };
  outputs.link = LinkOf(index);
  outputs.peers = PeersOf(index);
  outputs.job_operator = OperatorOf(index);
  return outputs;
}

LinkOutputs World::LinkOf(int index) {
  LinkOutputs link;
  link.send = [this, index](std::uint64_t id, const json& frame) {
    auto it = streams_.find(id);
    if (!Output(index) || it == streams_.end() || !it->second.to_process_open) return;
    Stream& stream = it->second;
    stream.to_process = std::max(stream.to_process, time_.now() + LinkDelay());
    const Epoch view = frame["t"] == "view" && frame["self"].get<int>() >= 0
                           ? frame["view"]["epoch"].get<Epoch>()
                           : 0;
    if (view != 0) stream.views.insert(view);
    time_.At(stream.to_process,
             [this, index, id, sent = std::make_shared<const json>(frame), view] {
               auto at = streams_.find(id);
               if (at == streams_.end() || !at->second.to_process_open) return;
               const WorkerPtr worker = at->second.worker;
               if (worker == nullptr) return LauncherFrame(index, *sent);
               ToWorker(worker, [this, worker, id, sent, view] {
                 auto still = streams_.find(id);
                 if (view != 0 && still != streams_.end()) {
                   auto& views = still->second.views;
                   if (const auto found = views.find(view); found != views.end())
                     views.erase(found);
                 }
                 WorkerFrame(worker, id, *sent);
               });
             });
  };
  link.refuse = [this, index](std::uint64_t id, const std::string& message) {
    if (!Output(index)) return;
    Trace([&] { return pods_[index]->uid + " refuses a connection: " + message; });
    LinkOf(index).send(id, {{"t", "error"}, {"message", message}});
    time_.After(1, [this, id] { CloseBySidecar(id); });
  };
  link.drop = [this, index](std::uint64_t id) {
    if (!Output(index)) return;
    Trace([&] { return pods_[index]->uid + " drops a connection"; });
    time_.After(1, [this, id] { CloseBySidecar(id); });
  };
  return link;
}

PeerOutputs World::PeersOf(int index) {
  PeerOutputs peers;
  peers.deliver = [this, index](const std::string& to, const std::string& address,
                                const membership::Message& message) {
    if (Output(index) && !address.empty()) Deliver(index, to, message);
  };
  peers.watch = [this, index](const std::vector<membership::Pod>& list) {
    if (!Output(index)) return;
    SimPod& pod = *pods_[index];
    std::map<std::string, Watched> watched;
    for (const membership::Pod& other : list) {
      if (other.uid != pod.uid) watched[other.uid] = pod.watched[other.uid];
    }
    pod.watched = std::move(watched);
  };
  peers.suspects = [this, index](const std::string& uid) {
    const auto& watched = pods_[index]->watched;
    auto it = watched.find(uid);
    return it != watched.end() && it->second.suspected;
  };
  peers.look_around = [](const std::string&) {
    return std::vector<std::string>();
  };  // all watch all
  peers.unreachable = [this, index](const std::string& uid) {
    const auto& watched = pods_[index]->watched;
    auto it = watched.find(uid);
    return it != watched.end() && it->second.unreachable;
  };
  peers.set_news = [this, index](Epoch epoch, std::uint64_t step) {
    pods_[index]->news = epoch;
    pods_[index]->news_step = step;
    pods_[index]->session->SetEpoch(epoch);
  };
  return peers;
}

// Every pod of a view reports the same text.
ViewPtr World::ViewOf(const std::string& text) {
  ViewPtr& known = reported_[text];
  if (known != nullptr) return known;
  auto view = membership::DecodeView(text);
  if (view) {
    known = std::make_shared<const membership::View>(std::move(*view));
  } else {
    Fail("a view that can't be read: " + view.error());
  }
  return known;
}

OperatorOutputs World::OperatorOf(int index) {
  const auto session = [this, index]() -> rendezvous::OperatorSession& {
    return *pods_[index]->session;
  };
  OperatorOutputs outputs;
  outputs.ask_record = [this, index](const membership::Message& message) {
    if (Output(index)) AskRecord(index, message);
  };
  outputs.report_readiness = [this, index, session](bool ready,
                                                    const std::vector<std::uint32_t>& missing,
                                                    const std::string& candidate) {
    if (Output(index)) session().SetReadiness({ready, missing, candidate});
  };
  outputs.report_view = [this, index, session](const std::string& text, const std::string& rebuild,
                                               std::uint64_t step) {
    if (!Output(index)) return;
    if (const ViewPtr view = ViewOf(text)) Announce(view);
    session().ReportView(text, rebuild, step);
  };
  outputs.report_exit = [session](const job::WorkerExit& exit) {
    session().ReportWorkerExit(exit);
  };
  outputs.report_finished = [this, index, session](Epoch epoch) {
    if (Output(index)) session().ReportFinished(epoch);
  };
  outputs.report_health = [this, index, session](bool able, std::chrono::milliseconds unable) {
    if (Output(index)) session().ReportHealth(able, unable);
  };
  outputs.report_stalls = [session](const std::vector<job::Stall>& stalls) {
    session().ReportStalls(stalls);
  };
  outputs.report_failing_gpus = [session](const std::vector<job::GpuHealth>& gpus) {
    session().ReportFailingGpus(gpus);
  };
  outputs.report_step_awaited = [session](std::chrono::milliseconds awaited) {
    session().ReportStepAwaited(awaited);
  };
  outputs.report_recovery = [this, index, session](const membership::RecoveryReport& made) {
    if (!Output(index)) return;
    CheckNobodyUses(index, membership::MakeEpoch(made.lineage, 0) - 1, "reports that it makes way");
    session().ReportRecovery(membership::EncodeReport(made));
  };
  return outputs;
}

// ---- Streams

std::uint64_t World::Connect(int index, const WorkerPtr& worker) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr) return 0;
  Stream stream;
  stream.pod = index;
  stream.life = pod.life;
  stream.worker = worker;
  streams_[next_stream_] = std::move(stream);
  return next_stream_++;
}

void World::SendToSidecar(std::uint64_t id, json frame) {
  auto it = streams_.find(id);
  if (it == streams_.end() || !it->second.to_sidecar_open) return;
  Stream& stream = it->second;
  stream.to_sidecar = std::max(stream.to_sidecar, time_.now() + LinkDelay());
  const bool launcher = stream.worker == nullptr;
  auto sent = std::make_shared<const json>(std::move(frame));
  time_.At(stream.to_sidecar, [this, id, launcher, sent = std::move(sent)] {
    auto at = streams_.find(id);
    if (at == streams_.end()) return;
    ToAgent(at->second.pod, at->second.life, [id, launcher, sent](Agent& agent) {
      if ((*sent)["t"] == "hello") {
        agent.workers().OnHello(id, launcher, *sent, 0);
      } else {
        agent.workers().OnFrame(id, *sent);
      }
    });
  });
}

// All that the process has written is read before the end.
void World::CloseByProcess(std::uint64_t id) {
  auto it = streams_.find(id);
  if (it == streams_.end() || !std::exchange(it->second.to_sidecar_open, false)) return;
  it->second.to_process_open = false;
  const Micros at = std::max(it->second.to_sidecar, time_.now() + LinkDelay());
  time_.At(at, [this, id] {
    auto still = streams_.find(id);
    if (still == streams_.end()) return;
    const Stream stream = still->second;
    streams_.erase(still);
    ToAgent(stream.pod, stream.life, [id](Agent& agent) { agent.workers().OnClosed(id); });
  });
}

// What is under way in either direction is lost.
void World::CloseBySidecar(std::uint64_t id) {
  auto it = streams_.find(id);
  if (it == streams_.end()) return;
  const Stream stream = it->second;
  streams_.erase(it);
  ToAgent(stream.pod, stream.life, [id](Agent& agent) { agent.workers().OnClosed(id); });
  if (!stream.to_process_open) return;
  time_.After(LinkDelay(), [this, id, stream] {
    if (stream.worker == nullptr) return LauncherClosed(stream.pod, id);
    ToWorker(stream.worker, [this, id, worker = stream.worker] { WorkerClosed(worker, id); });
  });
}

}  // namespace ringmaster::app::sim
