// The simulated world: pods with a real Agent each, workers, network, API server, operator. Private
// to this folder.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectives/engine/recovery.h"
#include "collectives/engine/result_log.h"
#include "common/membership/member.h"
#include "common/membership/quorum_record.h"
#include "operator/api/horovod_job.h"
#include "sidecar/app/agent.h"
#include "sidecar/launcher/exit_policy.h"
#include "sidecar/launcher/shutdown.h"
#include "sidecar/launcher/slots.h"
#include "sidecar/launcher/standby_schedule.h"
#include "sidecar/rendezvous/operator_session.h"
#include "tests/sim/api_server.h"
#include "tests/sim/operator_process.h"
#include "tests/sim/ring.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app::sim {

using nlohmann::json;

struct Worker;
using WorkerPtr = std::shared_ptr<Worker>;

// A connection of a process to its pod's sidecar.
struct Stream {
  int pod = 0;
  std::uint32_t life = 0;  // of the sidecar
  WorkerPtr worker;        // null: the launcher's
  bool to_sidecar_open = true, to_process_open = true;
  Micros to_sidecar = 0, to_process = 0;  // each direction keeps its order
  std::multiset<Epoch> views;             // under way to the worker
};

enum class Role : std::uint8_t { kUnknown, kBootstrap, kJoining, kStandby, kMember };
enum class Phase : std::uint8_t { kNoView, kConnecting, kConnected, kActive, kBroken };

// A worker process: what library and script do, as far as the sidecar can see it.
struct Worker {
  int pod = 0, slot = -1;
  std::uint64_t incarnation = 0;
  std::int64_t pid = 0;
  bool standby = false;  // began as one
  bool alive = true;
  Micros stopped_until = 0;                   // by a signal
  std::vector<std::function<void()>> asleep;  // what came meanwhile

  // collectives/sidecar_client
  std::uint64_t stream = 0;  // 0: not connected
  bool welcomed = false;
  bool fenced = false;
  std::deque<json> queued;  // for the next welcome
  Micros connect_wait = 0;
  Micros answered = 0;  // when the last answered ping was sent; 0: none
  std::uint64_t pings = 0;
  std::map<std::uint64_t, Micros> unanswered;

  // collectives/elastic
  Role role = Role::kUnknown;
  bool user_waits = false, wants_to_enter = false;
  Epoch reported_installed = 0;
  Epoch boundary_epoch = 0;
  std::int64_t boundary_step = 0;

  // collectives/engine
  ViewPtr view;
  Epoch epoch = 0;  // newest that it was given
  Phase phase = Phase::kNoView;
  Epoch stopped = 0, armed = 0, ran = 0, held = 0;
  bool has_state = true;
  bool entered = false, detached = false, standing = false, ended = false;
  bool rebuild_pending = false;
  std::set<int> suspected;    // ranks of the view
  std::optional<int> broken;  // what it has said of the view: the link that broke, -1: unknown
  std::int64_t step = 0;
  Epoch finished = 0;  // the ranks of this view agreed to end

  // Its operations: which call of the view's ring it is in or comes to next, and what it keeps.
  Call call = Call::kExchange;
  std::size_t place = 0;   // of that call in the ring
  bool in_call = false;    // it has given its part
  bool busy = false;       // on its way through calls; else it waits for its script
  std::uint64_t turn = 0;  // rises when it is interrupted
  engine::RecoveryPlan plan;
  std::size_t handover = 0;                  // of the plan, the next one
  std::size_t agreed = 0;                    // operations of the round that are still to run
  bool armed_round = false;                  // the round's step end is the boundary
  std::optional<engine::Retained> executed;  // not confirmed yet
  engine::ResultLog log;

  // What its script has seen: results of the step that is under way, and all results ever.
  std::size_t done = 0;
  std::uint64_t model = 0;
  std::map<std::uint64_t, std::uint64_t> recent;  // results by number, the last few

  bool holds = false;  // the truth, which it doesn't know itself
};

struct Child {
  int slot = -1;
  std::uint64_t incarnation = 0, standby_incarnation = 0;
  WorkerPtr worker;
  launcher::TimePoint began;
  launcher::TimePoint began_local = {};  // by its pod's clock
  bool ended_by_us = false;
};

// What a launcher process decides by is the product's; its processes and its socket are played.
struct Launcher {
  explicit Launcher(int count) : slots(count) {}

  std::uint64_t stream = 0;
  Micros backoff = 0;
  std::deque<json> pending;  // until it is connected
  std::vector<Child> children;
  launcher::Slots slots;
  launcher::StandbySchedule standby;
  launcher::Shutdown shutdown;
  std::uint64_t timer = 0;
  bool begun = false, ended = false;
  bool ending() const { return shutdown.ending(); }
};

// What a sidecar's heartbeats know of another pod.
struct Watched {
  bool suspected = false, unreachable = false;
  Micros silence = 0;
};

// A sidecar's stream to the operator: played, what goes over it is not.
struct OperatorStream : rendezvous::ReportSink {
  bool Send(const rendezvous::QueuedReport& queued) override {
    if (number == 0) return false;
    unsent.push_back(queued);
    carry();
    return true;
  }

  std::uint64_t number = 0;  // 0: there is none
  Micros begun = 0;
  std::deque<rendezvous::QueuedReport> unsent;
  int held_up = 0;                  // of `unsent`: their time has come, and no operator was there
  std::function<void()> carry;      // sets the newest on its way
  Micros reports = 0, notices = 0;  // each direction keeps its order
};

struct SimPod {
  explicit SimPod(int slots) : launcher(slots) {}

  int index = 0;
  std::string uid, name;
  bool gone = false;     // for good
  bool leaving = false;  // its object says so
  int exit_code = 137;   // of its worker container

  // Its kubelet.
  bool placed = false, deleting = false, deletion_seen = false;
  bool end_told = false;  // that all of its containers have terminated

  // Clocks.
  std::int64_t drift_ppm = 0;
  Micros stood_still = 0;  // how long its steady clock did
  Micros wall_step = 0;

  // Disk. No state: never written, or lost.
  std::optional<membership::PersistentState> disk;
  std::uint64_t newest_incarnation = 0;
  bool disk_fails = false;

  // The sidecar.
  std::unique_ptr<Agent> agent;  // null: it is not running
  std::uint32_t life = 0;
  bool starts_again = true;
  bool terminated = false;  // the sidecar got SIGTERM
  int crash_after = -1;     // dies after so many more outputs
  bool crashed = false;     // in the middle of a call: what it still does has not happened
  bool timer_set = false;
  Micros wake = 0;
  std::uint64_t timer = 0;
  int woken_in_vain = 0;
  Micros paused_until = 0;                    // the sidecar
  Micros machine_until = 0;                   // all of the pod
  std::vector<std::function<void()>> asleep;  // what came meanwhile
  std::map<std::string, Watched> watched;     // by pod uid
  Epoch news = 0;
  std::uint64_t news_step = 0;
  std::unique_ptr<rendezvous::OperatorSession> session;  // with the operator
  OperatorStream to_operator;
  Launcher launcher;
};

// A decided view and what became of it.
struct Decided {
  ViewPtr view;
  bool ticking = false;
  Micros last_step = 0;
  Ring ring;
};

class World {
 public:
  explicit World(const Options& options);
  ~World();
  Outcome Run();

 private:
  // world.cc: set-up, sidecars, streams
  void Begin();
  void DrawProgram();
  void StartSidecar(int pod);
  AgentOutputs Outputs(int pod);
  LinkOutputs LinkOf(int pod);
  PeerOutputs PeersOf(int pod);
  OperatorOutputs OperatorOf(int pod);
  ViewPtr ViewOf(const std::string& text);  // null: it has failed
  void CrashSidecar(int pod, const std::string& why);
  bool Output(int pod);  // false: the sidecar has died, so this does not happen
  // Everything that comes to an agent. It is dropped where that sidecar is gone by then.
  void ToAgent(int pod, std::uint32_t life, std::function<void(Agent&)> work);
  void Call(int pod, const std::function<void(Agent&)>& work);
  void Schedule(int pod);
  void OnTimer(int pod, std::uint64_t timer);
  void Pause(int pod, Micros duration, bool machine);
  void WakeUp(int pod, Micros stands_still);
  Micros Local(const SimPod& pod) const;
  bool Asleep(const SimPod& pod) const;
  bool Reachable(int pod) const { return pods_[pod]->agent != nullptr && !Asleep(*pods_[pod]); }
  int IndexOf(const std::string& uid) const;
  SimPod& PodOf(const std::string& uid) { return *pods_[IndexOf(uid)]; }
  Micros LinkDelay() { return random_.Between(30, random_.Chance(20) ? 30 * kMs : 800); }

  std::uint64_t Connect(int pod, const WorkerPtr& worker);
  void SendToSidecar(std::uint64_t stream, json frame);
  void CloseByProcess(std::uint64_t stream);
  void CloseBySidecar(std::uint64_t stream);

  // network.cc
  void Deliver(int from, const std::string& to, const membership::Message& message);
  bool Connected(int a, int b) const;
  bool BothWays(int a, int b) const { return Connected(a, b) && Connected(b, a); }
  void Beat(int pod, std::uint32_t life);
  void BeatOne(int pod, int other, Watched* watched);
  void NoticeDeath(int dead);

  // launcher.cc
  void LauncherConnect(int pod);
  void LauncherClosed(int pod, std::uint64_t stream);
  void LauncherSend(int pod, json frame);
  void TellHalt(const WorkerPtr& worker);
  void LauncherFrame(int pod, const json& frame);
  launcher::TimePoint LauncherNow() const;
  launcher::TimePoint PodNow(int pod) const {
    return launcher::TimePoint(std::chrono::microseconds(Local(*pods_[pod])));
  }
  void LauncherSleeps(int pod);
  void RunLauncherTimers(int pod);
  void StartProcess(int pod, int slot, std::uint64_t incarnation);
  void StartWorker(int pod, int slot);
  void StartStandby(int pod);
  void OnExit(const WorkerPtr& worker, int code, int signal);
  void OnStandbyExit(int pod, const Child& child);
  void OnWorkerExit(int pod, const Child& child, int code, const launcher::ExitDecision& decision);
  void Restart(int pod, const Child& child);
  bool PromoteStandby(int pod, int slot);
  void StopAll(int pod, int code, Micros grace);
  void Terminate(int pod);
  void CheckLauncherEnd(int pod);
  WorkerPtr FindProcess(int pod, int slot, std::uint64_t incarnation) const;

  // worker.cc
  bool Frozen(const Worker& worker) const;
  void ToWorker(const WorkerPtr& worker, std::function<void()> work);
  void Thaw(const WorkerPtr& worker);
  void WorkerConnect(const WorkerPtr& worker);
  void WorkerClosed(const WorkerPtr& worker, std::uint64_t stream);
  void WorkerSend(const WorkerPtr& worker, json frame);
  void WorkerBeat(const WorkerPtr& worker);
  bool CheckFence(const WorkerPtr& worker);
  void WorkerFrame(const WorkerPtr& worker, std::uint64_t stream, const json& frame);
  void OnWelcome(const WorkerPtr& worker, const json& frame);
  void OnView(const WorkerPtr& worker, const json& frame);
  void OnArm(const WorkerPtr& worker, Epoch epoch);
  void Detach(const WorkerPtr& worker);
  void Enter(const WorkerPtr& worker);
  void AskToEnter(const WorkerPtr& worker);
  void RepeatToSidecar(const WorkerPtr& worker);
  void ExitWhenHeard(const WorkerPtr& worker, Micros since);
  void LeaveView(Worker* worker);
  void ReachBoundary(const WorkerPtr& worker);
  void Exit(const WorkerPtr& worker, int code, int signal);
  void EndSoon(const WorkerPtr& worker, int code);

  // ring.cc
  void Tick(Epoch epoch);
  void TickSoon(Epoch epoch);
  std::vector<WorkerPtr> RanksOf(const membership::View& view) const;
  bool InView(const WorkerPtr& worker, Epoch epoch) const;
  void ConnectRanks(const std::vector<WorkerPtr>& ranks);
  void FinishJob(const membership::View& view, const std::vector<WorkerPtr>& ranks);
  void LookForBroken(const membership::View& view, const std::vector<WorkerPtr>& ranks);
  void Suspect(const WorkerPtr& worker, int rank);
  void SayBroken(const WorkerPtr& worker, int rank);
  void BreakRing(const WorkerPtr& worker);

  // reductions.cc: the calls of a ring, one rank after the other
  void Go(Ring* ring, const std::vector<WorkerPtr>& ranks);
  void Retry(const std::vector<WorkerPtr>& ranks);
  bool Advance(const WorkerPtr& worker);
  void AdvanceSoon(const WorkerPtr& worker);
  void EnterCall(const WorkerPtr& worker);
  Given GivenBy(const Worker& worker);
  bool MayLeave(const WorkerPtr& worker, Stage* stage);
  void LeaveCall(const WorkerPtr& worker, const Stage& stage);
  void LeaveVote(const WorkerPtr& worker, const Stage& stage);
  void NextOperation(const WorkerPtr& worker);
  void LeaveReduction(const WorkerPtr& worker, const Stage& stage);
  void Reduce(Stage* stage, const membership::View& view);
  void Publish(const WorkerPtr& worker, const engine::Retained& result);
  void EndStep(const WorkerPtr& worker, bool armed);
  void Interrupt(Worker* worker);
  void StrikeRing(const WorkerPtr& worker);

  // recovery.cc: rule 14
  std::vector<std::byte> HoldingOf(const Worker& worker);
  void LeaveExchange(const WorkerPtr& worker, const Stage& stage);
  void NextHandover(const WorkerPtr& worker);
  void LeaveHandover(const WorkerPtr& worker, const Stage& stage);
  void TakeState(const WorkerPtr& worker, const Stage& stage);
  void Activate(const WorkerPtr& worker);

  // agreement.cc: what must hold of the operations
  void CheckVote(const Stage& stage, const membership::View& view);
  void CheckSame(const Given& one, const Given& other, const membership::View& view);
  void CheckFinal(const Given& given, const membership::View& view, bool goes_on);
  void CheckOver(const membership::View& view);
  std::string Difference(const Given& one, const Given& other) const;

  // operator.cc: streams to the operator, and when it looks at the job
  void OpenSession(int pod);
  rendezvous::OperatorCallbacks CallbacksOf(int pod);
  void DialOperator(int pod, std::uint32_t life);
  void CarryReport(int pod);
  void StreamEnds(int pod);
  void OperatorPoll(int pod);
  void OperatorHears(int pod, std::uint64_t stream, const v1::SidecarReport& report);
  void SendNotice(std::uint64_t number, v1::OperatorNotice notice);
  // The operator's end of the stream finds out; `at_once`: the other end could say so.
  void OperatorLoses(std::uint64_t stream, bool at_once);
  void AskRecord(int pod, const membership::Message& message);
  bool ReachesOperator(int pod) const;
  void StartOperator();
  // The process ends; for `away` there is none. `overlaps`: it takes part a little longer.
  void OperatorStops(Micros away, bool overlaps);
  void OperatorWakes();
  void OperatorLooks(OperatorProcess* process);
  void TellOperator(const kube::Resource& resource, const Change& change);
  runtime::Clock OperatorClock();
  CallFate FateOfCall();

  // kubelet.cc: what the API server has, and what follows from it in the pods
  void MakeJob();
  void PatchJob(const json& spec);
  void OnApiChange(const kube::Resource& resource, const Change& change);
  void OnJobObject(const json& object);
  void OnRecordObject(const json& object, bool deleted);
  void OnPodObject(const json& object, bool deleted);
  void AddPod(const json& object);
  void PlacePod(int pod);
  void SeeDeletion(int pod);
  void TellEnd(int pod);
  bool JobIs(const std::string& condition) const;
  std::string JobStatus() const;

  // faults.cc
  void InjectFault();
  void Strike(Fault fault, int pod);
  void Inject(Fault fault, int pod);
  void KillPod(int pod, const std::string& why);
  void Drain(int pod);
  void Partition();
  void Heal();
  int RandomPod();
  WorkerPtr RandomWorker(int pod);

  // checks.cc
  void Fail(const std::string& what);
  void Announce(const ViewPtr& view);
  void CheckTorn(const membership::View& view, const membership::View& parent);
  void BeginLineage(const membership::View& view);
  void CheckPromise(int pod, const membership::PersistentState& state);
  void CheckNobodyUses(int pod, Epoch epoch, const std::string& when);
  bool MayUse(const Worker& worker, Epoch epoch) const;
  bool Healthy(std::string* why);
  bool PodHealthy(const SimPod& pod, std::string* why);
  void TraceEnd();
  bool JobHealthy(std::string* why);
  void CheckEnd();
  Decided& Of(Epoch epoch) { return decided_[epoch]; }

  template <typename Text>
  void Trace(Text text) {
    if (options_.trace != nullptr) AppendTrace(text());
  }
  void AppendTrace(const std::string& text);
  std::string Name(const Worker& worker) const;

  const Options options_;
  Random random_;
  Timeline time_;
  std::unique_ptr<health::Metrics> metrics_;
  std::vector<std::unique_ptr<SimPod>> pods_;
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t next_stream_ = 1;
  std::int64_t next_pid_ = 1000;
  int slots_ = 1, standbys_ = 0, wanted_ = 1;
  std::uint32_t min_pods_ = 1;
  int loss_ = 0, repeat_ = 0, slow_ = 0;  // per thousand
  std::set<std::pair<int, int>> cut_;     // from, to
  std::vector<int> side_;                 // of the partition
  bool operator_apart_ = false;           // side 1 can't reach the operator

  // The cluster, and the operator in it.
  std::unique_ptr<ApiServer> api_;
  std::optional<membership::QuorumRecord> record_;  // as the API server has it
  Micros api_fails_until_ = 0;
  std::unique_ptr<OperatorProcess> operator_;  // null: none runs
  std::unique_ptr<OperatorProcess> former_;    // takes part a little longer than it should
  std::uint32_t operator_life_ = 0;
  Micros watch_ = 0;  // events keep their order
  bool look_set_ = false;
  Micros look_at_ = 0;
  std::uint64_t look_number_ = 0;
  std::uint64_t next_operator_stream_ = 1;
  std::map<std::uint64_t, int> operator_streams_;  // whose they are

  // What really happened.
  std::map<Epoch, Decided> decided_;
  std::map<std::string, ViewPtr> reported_;  // by its text
  ViewPtr newest_;
  Epoch trained_ = 0;
  std::vector<engine::Kind> program_;  // of a step
  bool together_ = false;              // the script asks for all of a step at once
  // All ranks of a view have had the operations below this number, so nobody is without them ever
  // after, and every model that has had so many and no more is this one.
  std::uint64_t final_number_ = 0;
  std::map<std::uint64_t, std::uint64_t> final_models_;  // by number
  std::map<std::uint64_t, std::string> results_;         // for people
  std::set<std::uint64_t> reduced_;                      // operations that ran in this lineage
  std::function<void(int pod)> strike_;                  // a fault that waits for a ring to be busy
  std::uint64_t strikes_ = 0;
  std::int64_t finish_at_ = -1;  // the script ends after this step
  bool finishing_ = false;       // its ranks have agreed
  Micros healed_at_ = -1;
  int faults_left_ = 0;
  bool over_ = false;
  std::string violation_;
  Coverage coverage_;
};

}  // namespace ringmaster::app::sim
