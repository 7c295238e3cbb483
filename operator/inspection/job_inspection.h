// What one look at a job has found; inspection.h takes it. Values only.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/inspection/sidecar_status.h"

namespace ringmaster::inspection {

struct Inspection {
  nlohmann::json job;
  std::vector<nlohmann::json> pods;              // its workers'
  std::map<std::string, SidecarStatus> answers;  // by pod; a pod without an answer is left out
  std::vector<nlohmann::json> events;            // if asked for; of the job and its pods
  std::vector<std::string> silent;               // "p1: why", of each that was asked in vain
};

// What to say of sidecars that were asked in vain; empty: all have answered.
std::string SilentText(const Inspection& inspection);

// Whether `a` knows more of the job than `b`: one of a newer view does, in the same view the
// coordinator, else who tells of more ranks and changes.
bool KnowsMore(const SidecarStatus& a, const SidecarStatus& b);

// The job as the API server gives it, with status.pods: what only the sidecars know.
nlohmann::json WithWorkers(const Inspection& inspection);

}  // namespace ringmaster::inspection
