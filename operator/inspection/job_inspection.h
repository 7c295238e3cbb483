// The result of observing a job once (inspection.h). Values only.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/inspection/sidecar_status.h"

namespace ringmaster::inspection {

struct Inspection {
  nlohmann::json job;
  std::vector<nlohmann::json> pods;              // the pods of its workers
  std::map<std::string, SidecarStatus> answers;  // by pod; without pods that didn't answer
  std::vector<nlohmann::json> events;            // about the job and its pods, if requested
  std::vector<std::string> silent;  // "p1: why", for each pod that was asked and didn't answer
};

// Describes the sidecars that did not answer; empty if all have answered.
std::string SilentText(const Inspection& inspection);

// `a` knows more about the job than `b`: it has a newer view; or, in the same view, it is the
// coordinator; or it reports more ranks and changes.
bool KnowsMore(const SidecarStatus& a, const SidecarStatus& b);

// The sidecar that knows most; null if none has answered. It lives as long as `inspection`.
const SidecarStatus* Teller(const Inspection& inspection);

// The job as the API server has it, with what only the sidecars know in status.pods.
nlohmann::json WithWorkers(const Inspection& inspection);

}  // namespace ringmaster::inspection
