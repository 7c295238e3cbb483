// The operators: they vote for the record, notify pods of its view, and recover the job from quorum
// loss (rule 9). There are two of them at times, each of which takes itself for the only one.
//
// Owner: World. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/membership/quorum_record.h"
#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/invariants.h"
#include "common/membership/sim/journal.h"
#include "common/membership/sim/network.h"
#include "common/membership/sim/random.h"
#include "common/membership/sim/record_store.h"
#include "common/membership/sim/sidecars.h"
#include "common/membership/sim/sim_operator.h"
#include "common/membership/sim/sim_pod.h"
#include "common/membership/sim/simulation.h"
#include "common/membership/sim/workers.h"

namespace ringmaster::membership::sim {

class Operators {
 public:
  static constexpr int kCount = 2;

  // All of them outlive it.
  struct Parts {
    const Options& options;
    EventQueue& events;
    Random& random;
    Network& network;
    const std::vector<SimPod>& pods;
    const JobSize& job;
    RecordStore& record;
    Journal& journal;
    Workers& workers;
    Sidecars& sidecars;
    Invariants& invariants;
  };
  explicit Operators(const Parts& parts) : parts_(parts) {}

  // The job begins with this view.
  void Begin(const ViewPtr& first);
  // One of them has heard of a view.
  bool KnowAView() const;

  void AskRecord(int op, const Message& message, int from);
  void NotifyView(int pod);
  // It looks whether there is anything to recover.
  void RunRecovery(int op);
  // What it has asked of a pod comes there, and what the pod answers comes back.
  void OnAsked(int pod, std::uint64_t lineage, bool fresh_workers);
  void OnReport(int op, int from, const RecoveryReport& report);
  // What a pod has reported so far.
  void Forget(int pod);

  // ---- Faults
  void Stop(int op, Micros until) { operators_[op].down_until = until; }
  void RecoverForNoReason(int op) { operators_[op].at_once = true; }
  void Heal();

 private:
  void Ask(int pod, std::uint64_t lineage, bool fresh_workers);
  bool WriteRecord(int op, const QuorumRecord& state, bool swap);
  void BeginIfStalled(int op);
  void HearPods(int op);
  void FinishIfHeard(int op, bool ask);
  void FinishWith(int op, const ViewPtr& view);
  void Restart(int op, const std::vector<std::string>& pods, bool ask);
  std::vector<int> MustReport() const;

  const Parts parts_;
  std::array<SimOperator, kCount> operators_;
};

}  // namespace ringmaster::membership::sim
