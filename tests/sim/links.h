// What processes and the sidecars of their pods say to each other: streams that keep the order of
// each direction and break with either end.
//
// Owner: World. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/sim/network.h"
#include "tests/sim/pods.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class Links {
 public:
  // All of them outlive it.
  struct Parts {
    Timeline& time;
    Network& network;
    Pods& pods;
    AgentPost to_agent;  // does work in a sidecar, unless that is gone
    std::function<void(int pod, const json& frame)> launcher_frame;
    std::function<void(int pod, std::uint64_t stream)> launcher_closed;
    std::function<void(const WorkerPtr&, std::uint64_t stream, const json& frame)> worker_frame;
    std::function<void(const WorkerPtr&, std::uint64_t stream)> worker_closed;
  };
  explicit Links(Parts parts) : parts_(std::move(parts)) {}

  // `worker` null: the launcher's. 0: no sidecar runs.
  std::uint64_t Open(int pod, const WorkerPtr& worker);
  void SendToSidecar(std::uint64_t stream, json frame);
  void SendToProcess(int pod, std::uint64_t stream, const json& frame);
  // What the library of a worker sends.
  void SendFrom(const WorkerPtr& worker, json frame);
  void CloseByProcess(std::uint64_t stream);
  void CloseBySidecar(std::uint64_t stream);
  // The sidecar of the pod dies.
  void CloseAllOf(int pod);

 private:
  const Parts parts_;
};

}  // namespace ringmaster::app::sim
