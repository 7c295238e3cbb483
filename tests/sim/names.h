// The names of the simulated job and its pods. Uids of pods are made of their numbers, so each is
// found by the other.
#pragma once

#include <string>

namespace ringmaster::app::sim {

inline constexpr char kJobName[] = "job";

inline std::string UidOf(int pod) { return "u" + std::to_string(pod); }
inline int IndexOf(const std::string& uid) { return std::stoi(uid.substr(1)); }

}  // namespace ringmaster::app::sim
