// Jobs that another controller looks after (spec.runPolicy.managedBy).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::api {

// The controller that the job names, if that is not Ringmaster's operator; else empty. The job need
// not be valid: whatever else stands in it is that controller's to read and to refuse.
std::string ForeignManagerOf(const nlohmann::json& job);

}  // namespace ringmaster::api
