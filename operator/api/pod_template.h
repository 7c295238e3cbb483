// What Ringmaster asks of spec.worker.template, and the typos in it that the API server of a CRD
// would let pass.
#pragma once

#include "operator/api/reader.h"

namespace ringmaster::api {

void ReadPodTemplate(Reader& pod_template);

// Set by the operator in every container; a user's value would be lost.
bool IsReservedEnv(const std::string& name);

}  // namespace ringmaster::api
