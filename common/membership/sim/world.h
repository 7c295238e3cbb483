// The simulated world: pods with sidecars and workers, network, operators. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/membership/member.h"
#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/job_truth.h"
#include "common/membership/sim/journal.h"
#include "common/membership/sim/network.h"
#include "common/membership/sim/random.h"
#include "common/membership/sim/record_store.h"
#include "common/membership/sim/sim_operator.h"
#include "common/membership/sim/sim_pod.h"
#include "common/membership/sim/simulation.h"

namespace ringmaster::membership::sim {

// How many pods the job wants, and how many workers are in each.
struct JobSize {
  int slots = 1, wanted = 1;
  std::uint32_t min_pods = 1;
};

class World {
 public:
  explicit World(const Options& options);
  Outcome Run();

 private:
  // world.cc: set-up, time, network, sidecars
  void Bootstrap();
  int AddPod(bool bootstrap);
  void Handle(const SimEvent& event);
  // True: the pod is paused, so the event was put off to the end of the pause.
  bool PostponedByPause(const SimEvent& event);
  void Deliver(const SimEvent& event);
  void OnTimer(const SimEvent& event);
  void StepMember(int pod, const Event& event);
  void Apply(int pod, std::vector<Action>* actions);
  void ApplyOne(int pod, Action& action);
  void Post(int from, int to, const Message& message);
  void ArmTimer(int pod);
  void CheckNotBusy(int pod);
  void Heartbeats(int pod);
  void StartSidecar(int pod);
  void CrashSidecar(int pod);
  Member* MemberOf(int pod) { return pods_[pod].up ? pods_[pod].member.get() : nullptr; }

  // operators.cc
  void AskRecord(int op, const Message& message, int from);
  void NotifyView(int pod);
  void OnAsked(int pod, std::uint64_t lineage, bool fresh_workers);
  void OnReport(int op, int from, const RecoveryReport& report);
  void Ask(int pod, std::uint64_t lineage, bool fresh_workers);
  bool WriteRecord(int op, const QuorumRecord& state, bool swap);
  void RunRecovery(int op);
  void BeginIfStalled(int op);
  void HearPods(int op);
  void FinishIfHeard(int op, bool ask);
  void FinishWith(int op, const ViewPtr& view);
  void Restart(int op, const std::vector<std::string>& pods, bool ask);
  bool Proven(int pod) const {
    return pods_[pod].proven_at >= 0 && pods_[pod].proven_at <= events_.now();
  }
  std::vector<int> MustReport() const;

  // workers.cc
  void ToWorkers(int pod, Command command, Epoch epoch);
  void OnWorkerCommand(const SimEvent& event);
  void OnWorkerMessage(const SimEvent& event);
  void SendFromWorker(int pod, int slot, Command command, Epoch epoch);
  void WorkersSeen(int pod);
  void CheckStopped(int pod);
  void CheckBoundary(int pod);
  void BootstrapWorker(const View& view, SimWorker* worker);
  void KillWorker(int pod, int slot);
  void StartWorker(int pod, int slot);
  void TryStep(Epoch epoch);
  void CompleteStep(const View& view, const std::vector<SimWorker*>& workers);

  // faults.cc
  void InjectFault();
  void Inject(Fault fault, int pod);
  void KillOne(int pod);
  void RestartSidecar(int pod, bool lose_file);
  void Partition(int pod);
  void CutLink(int pod);
  void SuspectWrongly();
  void BreakLink(int pod);
  void Drain(int pod);
  void StopOperators();
  void RecoverForNoReason();
  void Heal();
  int RandomPod();
  void KillPod(int pod);
  void KillMost();
  void ProveLater(int pod, int chance);
  void Reset(int pod);

  // checks.cc
  void Announce(const ViewPtr& view);
  void BeginLineage(const View& view);
  bool Healthy();
  bool RightlyBlocked();
  void CheckEnd();

  const Options options_;
  Random random_;
  Profile profile_;
  EventQueue events_;
  Journal journal_;
  Network network_;
  JobSize job_;
  std::vector<SimPod> pods_;
  RecordStore record_;
  SimOperator operators_[2];
  JobTruth truth_;
  std::vector<std::vector<Action>> spare_;  // emptied, to be filled again
  bool finished_ = false;
  Micros end_ = 0;  // by then training goes on with all
};

}  // namespace ringmaster::membership::sim
