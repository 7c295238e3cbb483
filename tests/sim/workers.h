// The worker processes of all pods, as collectives/sidecar_client, elastic and engine behave
// towards the sidecar.
//
// Owner: World. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/fault_plan.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/links.h"
#include "tests/sim/pods.h"
#include "tests/sim/ring_calls.h"
#include "tests/sim/rings.h"
#include "tests/sim/script.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class Workers {
 public:
  // All of them outlive it.
  struct Parts {
    Random& random;
    Timeline& time;
    Journal& journal;
    const Script& script;
    const FaultPlan& plan;
    Pods& pods;
    Invariants& invariants;
    Links& links;
    Rings& rings;
    RingCalls& calls;
    std::function<void(const WorkerPtr&, int code, int signal)> reaped;  // by its launcher
  };
  explicit Workers(Parts parts) : parts_(std::move(parts)) {}

  // ---- The process
  // Nothing stops it any more: it does what has come meanwhile.
  void Thaw(const WorkerPtr& worker);
  void Exit(const WorkerPtr& worker, int code, int signal);
  // The script comes out of its call with an error, or is done.
  void EndSoon(const WorkerPtr& worker, int code);
  // Its job has ended. It goes when the sidecar has heard so, or has been away for too long.
  void ExitWhenHeard(const WorkerPtr& worker, Micros since);

  // ---- The link
  void Connect(const WorkerPtr& worker);
  void OnClosed(const WorkerPtr& worker, std::uint64_t stream);
  void Beat(const WorkerPtr& worker);
  void OnFrame(const WorkerPtr& worker, std::uint64_t stream, const json& frame);

 private:
  bool CheckFence(const WorkerPtr& worker);
  void OnWelcome(const WorkerPtr& worker, const json& frame);
  void OnView(const WorkerPtr& worker, const json& frame);
  void OnArm(const WorkerPtr& worker, Epoch epoch);
  void RepeatToSidecar(const WorkerPtr& worker);
  void AskToEnter(const WorkerPtr& worker);
  void Enter(const WorkerPtr& worker);
  void Detach(const WorkerPtr& worker);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
