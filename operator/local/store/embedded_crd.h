// The schema that the embedded server validates by: crds/, as the build has put it into
// operator/api.
#pragma once

#include "operator/api/crd.h"

namespace ringmaster::local {

inline const char* const kEmbeddedCrd = api::CrdText();

}  // namespace ringmaster::local
