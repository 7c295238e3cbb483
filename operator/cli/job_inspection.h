// What one look at a job has found; inspection.h takes it. Values only.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/cli/sidecar_status.h"

namespace ringmaster::cli {

struct Inspection {
  nlohmann::json job;
  std::vector<nlohmann::json> pods;              // its workers'
  std::map<std::string, SidecarStatus> answers;  // by pod; a pod without an answer is left out
  std::vector<nlohmann::json> events;            // if asked for; of the job and its pods
};

// The job as the API server gives it, with status.pods: what only the sidecars know.
nlohmann::json WithWorkers(const Inspection& inspection);

}  // namespace ringmaster::cli
