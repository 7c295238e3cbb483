// What an API server demands of metadata, whatever the kind.
//
// Thread rule: pure.
#pragma once

#include <string>
#include <vector>

#include "operator/local/store/status.h"

namespace ringmaster::local {

// Of labels, annotations, owner references and finalizers; the name is checked elsewhere.
std::vector<Cause> CheckMetadata(const Json& meta);

}  // namespace ringmaster::local
