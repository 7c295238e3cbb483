// The documents by which a client learns what is served: /api, /apis, /version and the resource
// lists.
#pragma once

#include <optional>
#include <string>

#include "operator/local/store/schema.h"

namespace ringmaster::local {

// nullopt: not a path of discovery.
std::optional<Json> Discover(const std::string& path, const CrdSchema& crd);

}  // namespace ringmaster::local
