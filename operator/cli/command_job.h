// Jobs that `ringmaster run -np N COMMAND` makes, which have no manifest that could be changed.
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::cli {

// The image in such a job's template: nothing is pulled, the command runs as it is on this machine.
inline constexpr char kImageOfCommand[] = "ringmaster.dev/this-machine:latest";

// How to start such a job so that it could have as many replicas; empty if it could, or if the job
// is of a manifest.
std::string ScaleAdvice(const nlohmann::json& job, int replicas);

}  // namespace ringmaster::cli
