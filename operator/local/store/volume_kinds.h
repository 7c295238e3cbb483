// The kinds of volumes that local mode can give. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/local/store/status.h"

namespace ringmaster::local {

// What is wrong with the volumes of a pod's spec, which stands at `path`. A volume of another kind
// would be an empty directory of each pod, and what is written to it would be lost.
std::vector<Cause> CheckVolumes(const Json& pod_spec, const std::string& path);

}  // namespace ringmaster::local
