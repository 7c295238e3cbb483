// Whether a node is open to a pod, resources apart. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::scheduler {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

// `pod` may be a template. What is no toleration tolerates nothing.
bool Tolerates(const nlohmann::json& pod, const Taint& taint);

// Why not, in the words of the default scheduler; empty: it is.
std::string Refusal(const nlohmann::json& pod, const nlohmann::json& node);

}  // namespace ringmaster::scheduler
