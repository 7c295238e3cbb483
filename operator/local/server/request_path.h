// What a URL of the Kubernetes API asks for. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/local/store/status.h"

namespace ringmaster::local {

struct ApiRequest {
  const Resource* resource = nullptr;
  std::string ns, name, subresource;
  bool core_event = false;  // events by the old core/v1 path: converted on the way
};

// nullopt: not a path of a resource that is served.
std::optional<ApiRequest> ParsePath(const std::string& path);

// Event objects between events.k8s.io/v1 (stored) and core/v1.
Json ToCoreEvent(const Json& event);
Json FromCoreEvent(const Json& event);

}  // namespace ringmaster::local
