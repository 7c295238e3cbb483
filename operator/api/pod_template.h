// Checks spec.worker.template. The schema in crds/ ensures that its fields are those of a pod, of
// the right type and within bounds. The CEL rules of that schema are repeated here in C++.
//
// Pure.
#pragma once

#include <set>
#include <string>

#include "operator/api/field_error.h"

namespace ringmaster::api {

// The container of the template that runs the workers.
inline constexpr char kWorkerContainer[] = "worker";

void CheckPodTemplate(const Json& pod_template, bool taken_up, FieldErrors* errors);

// Environment variables that operator or launcher set in every container, so that a user's value
// would be lost. Names that begin with RINGMASTER_MOUNT_ are reserved too.
const std::set<std::string>& ReservedEnv();
bool IsReservedEnv(const std::string& name);

}  // namespace ringmaster::api
