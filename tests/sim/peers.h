// What sidecars send to each other: messages and heartbeats, and how the death of one is noticed.
//
// Owner: World. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/membership/member.h"
#include "tests/sim/network.h"
#include "tests/sim/pods.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class Peers {
 public:
  // All of them outlive it.
  struct Parts {
    Random& random;
    Timeline& time;
    Network& network;
    Pods& pods;
    AgentPost to_agent;  // does work in a sidecar, unless that is gone
  };
  explicit Peers(Parts parts) : parts_(std::move(parts)) {}

  void Deliver(int from, const std::string& to, const membership::Message& message,
               const std::string& change);
  // The sidecar of this life beats from now on.
  void Beat(int pod, std::uint32_t life);
  // The connections to a process that dies are reset, where the network carries that.
  void NoticeDeath(int dead);

 private:
  void BeatOne(int pod, int other, Watched* watched);

  const Parts parts_;
};

}  // namespace ringmaster::app::sim
