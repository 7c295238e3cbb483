// Sets which nodes the scheduler avoids for a new pod. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"

namespace ringmaster::controllers {

// The scheduler chooses one of these nodes only if no other fits.
void AvoidNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// The scheduler never chooses one of these nodes.
void KeepOffNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// Keeps the pods of one job near each other, on nodes with the same value of the topology's label.
// For jobs that gang admission doesn't place: the scheduler chooses the place of the first pod, and
// the others follow.
void KeepTogether(nlohmann::json& pod, const api::TopologyPolicy& topology,
                  const std::string& job_uid);
// Restricts the pod to nodes with this value of the label, and records the value in an annotation.
// Does nothing if `domain` is empty.
void PutInDomain(nlohmann::json& pod, const api::TopologyPolicy& topology,
                 const std::string& domain);
// The value in the annotation; empty if there is none, or if it is of another label.
std::string DomainOf(const std::string& annotation, const api::TopologyPolicy& topology);

}  // namespace ringmaster::controllers
