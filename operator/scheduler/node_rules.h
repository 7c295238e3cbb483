// Whether a node is open to a pod, whatever resources it has free. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::scheduler {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

// `pod` may be a pod template. A malformed toleration tolerates nothing.
bool Tolerates(const nlohmann::json& pod, const Taint& taint);

// The node that a pod of a DaemonSet is made for; empty: the pod names none in this way.
std::string OnlyNodeOf(const nlohmann::json& pod);

constexpr char kOtherNode[] = "node(s) didn't match Pod's node affinity/selector";

// Why the node is not open to the pod, in the words of the default scheduler; empty if it is.
std::string Refusal(const nlohmann::json& pod, const nlohmann::json& node);

}  // namespace ringmaster::scheduler
