// The kinds of volumes that local mode can give. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/local/store/status.h"

namespace ringmaster::local {

// What is wrong with the volumes of a pod, or of a job's pods. A volume of another kind would be an
// empty directory of each pod, and what is written to it would be lost.
std::vector<Cause> CheckVolumes(const Resource& resource, const Json& object);

}  // namespace ringmaster::local
