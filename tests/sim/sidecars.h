// The sidecars of all pods: each has a real Agent, whose clock, disk and outputs are simulated.
// They start, pause, die and start again from what they have stored.
//
// Owner: World. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "sidecar/app/agent.h"
#include "tests/sim/invariants.h"
#include "tests/sim/journal.h"
#include "tests/sim/launchers.h"
#include "tests/sim/links.h"
#include "tests/sim/operator_sessions.h"
#include "tests/sim/operators.h"
#include "tests/sim/peers.h"
#include "tests/sim/pod.h"
#include "tests/sim/pods.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"
#include "tests/sim/workers.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app::sim {

class Sidecars {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    Random& random;
    Timeline& time;
    Journal& journal;
    const JobSize& job;
    Pods& pods;
    Invariants& invariants;
    Links& links;
    Workers& workers;
    Launchers& launchers;
    Peers& peers;
    OperatorSessions& sessions;
    Operators& operators;
    std::function<void(int pod, const std::string& why)> kill_pod;
  };
  explicit Sidecars(Parts parts);
  ~Sidecars();

  void Start(int pod);
  void Crash(int pod, const std::string& why);
  // Everything that comes to an agent. It is dropped where that sidecar is gone by then.
  void ToAgent(int pod, std::uint32_t life, std::function<void(Agent&)> work);
  void Pause(int pod, Micros duration, bool machine);
  void WakeUp(int pod, Micros stands_still);

 private:
  void Call(int pod, const std::function<void(Agent&)>& work);
  bool Output(int pod);  // false: the sidecar has died, so this does not happen
  void Schedule(int pod);
  void OnTimer(int pod, std::uint64_t timer);
  AgentOutputs Outputs(int pod);
  LinkOutputs LinkOf(int pod);
  PeerOutputs PeersOf(int pod);
  OperatorOutputs OperatorOf(int pod);

  const Parts parts_;
  const std::unique_ptr<health::Metrics> metrics_;  // of all; nobody reads them
};

}  // namespace ringmaster::app::sim
