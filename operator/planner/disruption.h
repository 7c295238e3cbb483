// What a node's facts announce for the pods on it. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

// On a node that ends whatever we do, a pod waits this long for its replacement before it leaves
// the ring all the same.
inline constexpr std::chrono::seconds kWarnedGrace{20};

inline constexpr char kCordoned[] = "NodeCordoned";

struct Warning {
  std::string reason;   // NodeCordoned, or NodeTainted:KEY
  std::string message;  // for people
  bool ends = false;    // the node goes soon; a cordon alone says nothing about when
  TaintFacts taint;     // keeps pods off the node that don't tolerate it
};

// Keys of taints that a cluster sets before it takes a node away.
const std::vector<std::string>& DefaultDisruptionTaints();

// nullopt: nothing is announced. Unreachable, NotReady and pressure taints announce nothing: what
// they mean has happened already or may pass.
std::optional<Warning> WarningOf(const NodeFacts& node, const std::vector<std::string>& taint_keys);

// Nobody hears from the node's kubelet.
bool IsUnreachable(const NodeFacts& node);

}  // namespace ringmaster::planner
