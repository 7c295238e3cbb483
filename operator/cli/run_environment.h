// The environment of a run's commands on other machines: that of the user who started the run.
//
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::cli {

// The Secret in namespace "default" whose values are the variables.
inline constexpr char kEnvironmentSecret[] = "ringmaster-environment";

// The variable means the same on another machine: it doesn't describe this machine, this user's
// login here, or one of our runs.
bool Travels(const std::string& variable);

// Makes the Secret from which nodes read the environment, out of entries NAME=value.
nlohmann::json EnvironmentSecret(const std::vector<std::string>& environment);

}  // namespace ringmaster::cli
