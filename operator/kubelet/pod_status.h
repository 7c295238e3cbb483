// From what the containers of a pod do to the status that a kubelet writes. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::kubelet {

using kube::Json;

enum class ContainerKind { kInit, kSidecar, kMain };

struct ContainerState {
  enum class Phase { kWaiting, kRunning, kTerminated };
  std::string name;
  std::string image;
  ContainerKind kind = ContainerKind::kMain;
  Phase phase = Phase::kWaiting;
  std::string
      reason;  // waiting: PodInitializing, CrashLoopBackOff, ...; terminated: Completed, Error, ...
  std::string message;
  int exit_code = 0;  // 128+n for signal n
  std::string started_at, finished_at, id;
  Json last_state = Json::object();  // the one before, terminated
  int restarts = 0;
  bool started = false;  // sidecars and mains: startup probe passed
  bool ready = false;
  bool done = false;  // terminated, and no restart will come
  friend bool operator==(const ContainerState&, const ContainerState&) = default;
};

struct PodView {
  std::vector<ContainerState> containers;  // init containers and sidecars in order, then mains
  std::string restart_policy;
  bool terminating = false;
  std::string reason, message;  // why the pod failed as a whole; empty: by its containers
  bool failed = false;          // as a whole: killed, or an init container for good
  friend bool operator==(const PodView&, const PodView&) = default;
};

std::string PhaseOf(const PodView& pod);

// `live`: the status as it is; conditions of others stay. `address`: of the node, and so the pod's.
Json MakeStatus(const PodView& pod, Json live, const std::string& address, const std::string& now);

}  // namespace ringmaster::kubelet
