// Turns answers of an API server into kube::Error. No other file does that.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

// Describes a call: `get pods "digits-worker-0" in namespace "default"`. Every error message begins
// with it.
std::string Asked(const std::string& verb, const Resource& resource, const std::string& ns,
                  const std::string& name, const std::string& subresource = "");

// `status` is the metav1.Status in the body; any other body (null included) is quoted.
Error ErrorFromStatus(const std::string& asked, int http_status, const Json& status);

Error Unavailable(const std::string& asked, const std::string& why);
Error Internal(const std::string& asked, const std::string& why);

// A failure that no answer of the server told.
tl::unexpected<Error> Fail(ErrorCode code, const std::string& message);

std::string_view CodeName(ErrorCode code);

}  // namespace ringmaster::kube
