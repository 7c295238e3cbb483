// The part of a pod by which a scheduler, a queue or an autoscaler decides: what the pod takes and
// where it may go. Other objects that describe a job's pods have this part alone, because they must
// not show the command and its secrets.
//
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::api {

// The spec of `pod`, without what decides nothing.
nlohmann::json SchedulingSpec(const nlohmann::json& pod);

// A digest that is the same in every build. The API server and others fill in defaults, so a stored
// object can't be compared with what was written; their digests can.
std::string Digest(const nlohmann::json& value);

}  // namespace ringmaster::api
