// Which nodes the scheduler avoids for a new pod. Pure functions on JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"

namespace ringmaster::controllers {

// The scheduler takes one of these nodes only where no other fits.
void AvoidNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// The scheduler takes none of these nodes.
void KeepOffNodes(nlohmann::json& pod, const std::vector<std::string>& nodes);

// The pods of one job near each other, on nodes with the same value of the topology's label.
// Of what nobody counts: the scheduler finds the place for the first pod, and the others follow.
void KeepTogether(nlohmann::json& pod, const api::TopologyPolicy& topology,
                  const std::string& job_uid);
// On nodes with this value of it, which stands in an annotation, too. Empty: on any.
void PutInDomain(nlohmann::json& pod, const api::TopologyPolicy& topology,
                 const std::string& domain);
// The value that the annotation says; empty: none, or of another label.
std::string DomainOf(const std::string& annotation, const api::TopologyPolicy& topology);

}  // namespace ringmaster::controllers
