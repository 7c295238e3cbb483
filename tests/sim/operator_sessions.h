// What sidecars and operator say to each other: votes for the record, and a stream of reports and
// notices for each sidecar. What goes over it is the product's (operator_process.h).
//
// Owner: World. One thread.
#pragma once

#include <cstdint>
#include <utility>

#include "common/membership/member.h"
#include "operator.pb.h"
#include "sidecar/rendezvous/operator_session.h"
#include "tests/sim/journal.h"
#include "tests/sim/network.h"
#include "tests/sim/operators.h"
#include "tests/sim/pods.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class OperatorSessions {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    Random& random;
    Timeline& time;
    Journal& journal;
    Network& network;
    Pods& pods;
    Operators& operators;
    AgentPost to_agent;  // does work in a sidecar, unless that is gone
  };
  explicit OperatorSessions(Parts parts) : parts_(std::move(parts)) {}

  // For a sidecar that starts; Dial() begins its first stream.
  void Open(int pod);
  void Dial(int pod, std::uint32_t life);
  // Notices from now on when the stream is broken.
  void Poll(int pod);
  // The operator sends it.
  void SendNotice(std::uint64_t stream, v1::OperatorNotice notice);

  void AskRecord(int pod, const membership::Message& message);
  bool ReachesOperator(int pod) const;

 private:
  rendezvous::OperatorCallbacks CallbacksOf(int pod);
  void Carry(int pod);
  void End(int pod);
  void Hear(int pod, std::uint64_t stream, const v1::SidecarReport& report);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
