// The environment that commands of a run find on other machines: that of the person who started it.
//
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::cli {

// In the namespace "default"; its values are those of the variables.
inline constexpr char kEnvironmentSecret[] = "ringmaster-environment";

// Whether a variable means the same on another machine: not what names this one, this user's login
// here, or a run of ours.
bool Travels(const std::string& variable);

// The Secret that nodes read it from, out of entries NAME=value.
nlohmann::json EnvironmentSecret(const std::vector<std::string>& environment);

}  // namespace ringmaster::cli
