#include "tests/sim/sidecars.h"

#include <algorithm>
#include <utility>

#include "common/membership/message_json.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app::sim {
namespace {

constexpr int kWakesInVain = 3;

}  // namespace

Sidecars::Sidecars(Parts parts)
    : parts_(std::move(parts)), metrics_(std::make_unique<health::Metrics>("ns", "job", "pod")) {}

// Agents use what is here.
Sidecars::~Sidecars() {
  for (const auto& pod : parts_.pods) pod->agent.reset();
}

void Sidecars::Start(int index) {
  SimPod& pod = *parts_.pods[index];
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
  self.reads_changes = index % 4 != 3;  // the others are of an earlier version
  SidecarOptions options;
  options.job_namespace = "default";
  options.job_name = options.job_uid = "job";
  options.pod_name = self.name;
  options.pod_uid = pod.uid;
  options.operator_target = "operator";
  options.slots = parts_.job.slots;
  options.grace = std::chrono::seconds(8);
  options.init_timeout = std::chrono::seconds(120);
  options.without = parts_.options.without;
  parts_.journal.Trace([&] {
    return pod.uid + " sidecar starts, incarnation " + std::to_string(state.incarnation);
  });
  const std::uint32_t life = ++pod.life;
  pod.crashed = pod.timer_set = false;
  pod.crash_after = -1;
  pod.woken_in_vain = 0;
  pod.watched.clear();
  pod.news = membership::EpochOf(state.view);
  parts_.sessions.Open(index);
  pod.agent =
      std::make_unique<Agent>(options, self, std::move(state), Outputs(index), metrics_.get());
  Call(index, [](Agent& agent) { agent.Start(); });
  parts_.time.After(parts_.random.Below(250 * kMs),
                    [this, index, life] { parts_.peers.Beat(index, life); });
  parts_.time.After(parts_.random.Below(100 * kMs), [this, index, life] {
    parts_.sessions.Dial(index, life);
    if (parts_.pods[index]->life == life) parts_.sessions.Poll(index);
  });
  parts_.launchers.Begin(index);
}

void Sidecars::Crash(int index, const std::string& why) {
  SimPod& pod = *parts_.pods[index];
  if (pod.agent == nullptr) return;
  parts_.journal.Trace([&] { return pod.uid + " sidecar dies: " + why; });
  pod.agent.reset();
  pod.session.reset();
  ++pod.life;
  pod.asleep.clear();
  pod.paused_until = 0;
  parts_.links.CloseAllOf(index);
  parts_.operators.LoseStream(pod.to_operator.number,
                              parts_.sessions.ReachesOperator(index) && !pod.gone);
  pod.to_operator = OperatorStream();
  parts_.peers.NoticeDeath(index);
}

bool Sidecars::Output(int index) {
  SimPod& pod = *parts_.pods[index];
  if (pod.crashed) return false;
  if (pod.crash_after >= 0 && pod.crash_after-- == 0) pod.crashed = true;
  return !pod.crashed;
}

void Sidecars::ToAgent(int index, std::uint32_t life, std::function<void(Agent&)> work) {
  SimPod& pod = *parts_.pods[index];
  if (pod.agent == nullptr || pod.life != life) return;
  if (parts_.pods.Asleep(pod)) {
    pod.asleep.push_back(
        [this, index, life, work = std::move(work)] { ToAgent(index, life, work); });
    return;
  }
  Call(index, work);
}

void Sidecars::Call(int index, const std::function<void(Agent&)>& work) {
  SimPod& pod = *parts_.pods[index];
  if (!pod.agent->Done()) work(*pod.agent);
  if (pod.crashed) {
    Crash(index, "in the middle of what it did");
    // A kubelet starts no sidecar again where all other containers have ended.
    if (pod.terminated)
      parts_.time.After(0, [this, index] { parts_.kill_pod(index, "its containers have ended"); });
    return;
  }
  if (!pod.agent->Done()) return Schedule(index);
  if (pod.agent->exit_code() != 0) {
    Crash(index, "it could not store its state");
    parts_.time.After(parts_.random.Between(50 * kMs, kSecond), [this, index] { Start(index); });
    return;
  }
  parts_.time.After(0, [this, index] { parts_.kill_pod(index, "its sidecar has ended"); });
}

void Sidecars::Schedule(int index) {
  SimPod& pod = *parts_.pods[index];
  const Micros wake = std::chrono::duration_cast<std::chrono::microseconds>(
                          pod.agent->NextWake().time_since_epoch())
                          .count();
  if (pod.timer_set && wake >= pod.wake) return;
  pod.timer_set = true;
  pod.wake = wake;
  const Micros now = parts_.pods.Local(pod);
  if (wake > now) pod.woken_in_vain = 0;
  if (wake <= now && ++pod.woken_in_vain > kWakesInVain)
    parts_.journal.Fail("busy: " + pod.uid + " wants to be woken in the past, again and again");
  const std::uint64_t timer = ++pod.timer;
  // A clock that is slower gets there later.
  const Micros delay = std::max<Micros>(wake - now, 0);
  parts_.time.After(delay + delay / 200 + 1, [this, index, timer] { OnTimer(index, timer); });
}

void Sidecars::OnTimer(int index, std::uint64_t timer) {
  SimPod& pod = *parts_.pods[index];
  if (pod.agent == nullptr || pod.timer != timer) return;
  ToAgent(index, pod.life, [this, index](Agent& agent) {
    parts_.pods[index]->timer_set = false;
    agent.Tick();
  });
}

// ---- What pauses

void Sidecars::Pause(int index, Micros duration, bool machine) {
  SimPod& pod = *parts_.pods[index];
  if (parts_.pods.Asleep(pod)) return;
  (machine ? pod.machine_until : pod.paused_until) = parts_.time.now() + duration;
  const Micros stands_still = machine && parts_.random.Chance(500) ? duration : 0;
  parts_.time.After(duration, [this, index, stands_still] { WakeUp(index, stands_still); });
}

// What is ready when a process wakes is taken in any order: timers may come before sockets.
void Sidecars::WakeUp(int index, Micros stands_still) {
  SimPod& pod = *parts_.pods[index];
  pod.stood_still += stands_still;
  for (const Child& child : std::vector<Child>(pod.launcher.children))
    parts_.workers.Thaw(child.worker);
  auto ready = std::exchange(pod.asleep, {});
  if (pod.agent != nullptr && parts_.random.Chance(500)) {
    ToAgent(index, pod.life, [](Agent& agent) { agent.Tick(); });
  }
  for (const auto& work : ready) work();
}

// ---- What the agent does outside

AgentOutputs Sidecars::Outputs(int index) {
  AgentOutputs outputs;
  outputs.clock.now = [this, index] {
    return SteadyTime(std::chrono::microseconds(parts_.pods.Local(*parts_.pods[index])));
  };
  outputs.clock.unix_ms = [this, index] {
    return kUnixMs + (parts_.time.now() + parts_.pods[index]->wall_step) / kMs;
  };
  outputs.persist =
      [this, index](const membership::PersistentState& state) -> tl::expected<void, std::string> {
    SimPod& pod = *parts_.pods[index];
    if (!Output(index)) return {};
    if (std::exchange(pod.disk_fails, false)) return tl::unexpected(std::string("no space"));
    parts_.invariants.CheckPromise(index, state);
    pod.disk = state;
    return {};
  };
  outputs.link = LinkOf(index);
  outputs.peers = PeersOf(index);
  outputs.job_operator = OperatorOf(index);
  return outputs;
}

LinkOutputs Sidecars::LinkOf(int index) {
  LinkOutputs link;
  link.send = [this, index](std::uint64_t id, const json& frame) {
    if (Output(index)) parts_.links.SendToProcess(index, id, frame);
  };
  link.refuse = [this, index](std::uint64_t id, const std::string& message) {
    if (!Output(index)) return;
    parts_.journal.Trace(
        [&] { return parts_.pods[index]->uid + " refuses a connection: " + message; });
    LinkOf(index).send(id, {{"t", "error"}, {"message", message}});
    parts_.time.After(1, [this, id] { parts_.links.CloseBySidecar(id); });
  };
  link.drop = [this, index](std::uint64_t id) {
    if (!Output(index)) return;
    parts_.journal.Trace([&] { return parts_.pods[index]->uid + " drops a connection"; });
    parts_.time.After(1, [this, id] { parts_.links.CloseBySidecar(id); });
  };
  return link;
}

PeerOutputs Sidecars::PeersOf(int index) {
  PeerOutputs peers;
  peers.deliver = [this, index](const std::string& to, const std::string& address,
                                const membership::Message& message, const std::string& change) {
    if (Output(index) && !address.empty()) parts_.peers.Deliver(index, to, message, change);
  };
  peers.watch = [this, index](const std::vector<membership::Pod>& list) {
    if (!Output(index)) return;
    SimPod& pod = *parts_.pods[index];
    std::map<std::string, Watched> watched;
    for (const membership::Pod& other : list) {
      if (other.uid != pod.uid) watched[other.uid] = pod.watched[other.uid];
    }
    pod.watched = std::move(watched);
  };
  peers.suspects = [this, index](const std::string& uid) {
    const auto& watched = parts_.pods[index]->watched;
    auto it = watched.find(uid);
    return it != watched.end() && it->second.suspected;
  };
  peers.look_around = [](const std::string&) {
    return std::vector<std::string>();
  };  // all watch all
  peers.unreachable = [this, index](const std::string& uid) {
    const auto& watched = parts_.pods[index]->watched;
    auto it = watched.find(uid);
    return it != watched.end() && it->second.unreachable;
  };
  peers.set_news = [this, index](Epoch epoch, std::uint64_t step) {
    parts_.pods[index]->news = epoch;
    parts_.pods[index]->news_step = step;
    parts_.pods[index]->session->SetEpoch(epoch);
  };
  return peers;
}

OperatorOutputs Sidecars::OperatorOf(int index) {
  const auto session = [this, index]() -> rendezvous::OperatorSession& {
    return *parts_.pods[index]->session;
  };
  OperatorOutputs outputs;
  outputs.ask_record = [this, index](const membership::Message& message) {
    if (Output(index)) parts_.sessions.AskRecord(index, message);
  };
  outputs.report_readiness = [this, index, session](bool ready,
                                                    const std::vector<std::uint32_t>& missing,
                                                    const std::string& candidate) {
    if (Output(index)) session().SetReadiness({ready, missing, candidate});
  };
  outputs.report_view = [this, index, session](const membership::ViewPtr& view,
                                               const std::string& rebuild, std::uint64_t step) {
    if (!Output(index)) return;
    parts_.invariants.Announce(view);
    session().ReportView(view, rebuild, step);
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
  outputs.report_all_leave = [session] { session().ReportAllLeave(); };
  outputs.report_recovery = [this, index, session](const membership::RecoveryReport& made) {
    if (!Output(index)) return;
    parts_.invariants.CheckNobodyUses(index, membership::MakeEpoch(made.lineage, 0) - 1,
                                      "reports that it makes way");
    session().ReportRecovery(membership::EncodeReport(made));
  };
  return outputs;
}

}  // namespace ringmaster::app::sim
