// `ringmaster get` without -o json: jobs, and their pods below. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::cli {

// `jobs`: with status.pods, as `get -o json` prints them.
std::string JobsTable(const std::vector<nlohmann::json>& jobs, bool pods, bool wide);

}  // namespace ringmaster::cli
