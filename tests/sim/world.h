// The simulated world: pods with a real Agent each, workers, network, API server, operator. Private
// to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/quorum_record.h"
#include "sidecar/app/agent.h"
#include "sidecar/launcher/exit_policy.h"
#include "tests/sim/agreement.h"
#include "tests/sim/api_server.h"
#include "tests/sim/decided_views.h"
#include "tests/sim/fault_plan.h"
#include "tests/sim/journal.h"
#include "tests/sim/names.h"
#include "tests/sim/network.h"
#include "tests/sim/operators.h"
#include "tests/sim/pod.h"
#include "tests/sim/ring.h"
#include "tests/sim/script.h"
#include "tests/sim/simulation.h"
#include "tests/sim/stream_table.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app::sim {

inline constexpr char kJob[] = "job";

// How many pods the job wants, and what is in each.
struct JobSize {
  int slots = 1, standbys = 0, wanted = 1;
  std::uint32_t min_pods = 1;
};

class World {
 public:
  explicit World(const Options& options);
  ~World();
  Outcome Run();

 private:
  // world.cc: set-up, sidecars, streams
  void Begin();
  void StartSidecar(int pod);
  AgentOutputs Outputs(int pod);
  LinkOutputs LinkOf(int pod);
  PeerOutputs PeersOf(int pod);
  OperatorOutputs OperatorOf(int pod);
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
  SimPod& PodOf(const std::string& uid) { return *pods_[IndexOf(uid)]; }

  std::uint64_t Connect(int pod, const WorkerPtr& worker);
  void SendToSidecar(std::uint64_t stream, json frame);
  void CloseByProcess(std::uint64_t stream);
  void CloseBySidecar(std::uint64_t stream);

  // peers.cc
  void Deliver(int from, const std::string& to, const membership::Message& message);
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

  // operator_sessions.cc: the streams of sidecars to the operator
  void OpenSession(int pod);
  rendezvous::OperatorCallbacks CallbacksOf(int pod);
  void DialOperator(int pod, std::uint32_t life);
  void CarryReport(int pod);
  void StreamEnds(int pod);
  void OperatorPoll(int pod);
  void OperatorHears(int pod, std::uint64_t stream, const v1::SidecarReport& report);
  void SendNotice(std::uint64_t stream, const v1::OperatorNotice& notice);
  void AskRecord(int pod, const membership::Message& message);
  bool ReachesOperator(int pod) const;

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
  void Announce(const ViewPtr& view);
  void CheckTorn(const membership::View& view, const membership::View& parent);
  void BeginLineage(const membership::View& view);
  void CheckPromise(int pod, const membership::PersistentState& state);
  void CheckNobodyUses(int pod, Epoch epoch, const std::string& when);
  bool MayUse(const Worker& worker, Epoch epoch) const;
  void CheckVote(const Stage& stage, const membership::View& view);
  void CheckOver(const membership::View& view);
  bool Healthy(std::string* why);
  bool PodHealthy(const SimPod& pod, std::string* why);
  void TraceEnd();
  bool JobHealthy(std::string* why);
  void CheckEnd();
  std::string Name(const Worker& worker) const;

  const Options options_;
  Random random_;
  Timeline time_;
  Journal journal_;
  Network network_;
  Script script_;
  Agreement agreement_;
  FaultPlan faults_;
  DecidedViews views_;
  StreamTable streams_;
  JobSize job_;
  std::unique_ptr<health::Metrics> metrics_;
  std::vector<std::unique_ptr<SimPod>> pods_;
  std::int64_t next_pid_ = 1000;
  ApiServer api_;
  std::optional<membership::QuorumRecord> record_;  // as the API server has it
  Operators operators_;
  bool over_ = false;
};

}  // namespace ringmaster::app::sim
