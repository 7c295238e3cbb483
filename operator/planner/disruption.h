// What a node's facts announce for the pods on it. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

// On a node that is about to go, a pod waits this long for its replacement before it leaves the
// ring all the same.
inline constexpr std::chrono::seconds kWarnedGrace{20};
// The same for the last pod that has the job's state: as long as a spot instance lives after its
// notice.
inline constexpr std::chrono::seconds kLastWarnedGrace{120};

inline constexpr char kCordoned[] = "NodeCordoned";
inline constexpr char kGpuUnhealthy[] = "GpuUnhealthy";

struct Warning {
  std::string reason;   // NodeCordoned, NodeTainted:KEY or GpuUnhealthy
  std::string message;  // for people
  bool ends = false;    // the node goes soon; a cordon alone doesn't say when
  TaintFacts taint;     // keeps off pods that don't tolerate it
  // Only of this pod: it leaves at once where enough others train, and waits for its replacement
  // where it alone has the job's state.
  bool of_pod = false;
};

// Keys of taints that a cluster sets before it removes a node.
const std::vector<std::string>& DefaultDisruptionTaints();

// nullopt: nothing is announced. Unreachable, NotReady and pressure taints announce nothing,
// because their cause has happened already or may pass.
std::optional<Warning> WarningOf(const NodeFacts& node, const std::vector<std::string>& taint_keys);

// The node's kubelet is silent.
bool IsUnreachable(const NodeFacts& node);

}  // namespace ringmaster::planner
