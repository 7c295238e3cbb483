// What Ringmaster asks of spec.worker.template. That its fields are a pod's, of the right type and
// within their bounds, comes from the schema of crds/; the rules of that schema, which are in a
// language of their own there, are told again here.
//
// Pure.
#pragma once

#include <set>
#include <string>

#include "operator/api/field_error.h"

namespace ringmaster::api {

// The container of the template that runs the workers.
inline constexpr char kWorkerContainer[] = "worker";

void CheckPodTemplate(const Json& pod_template, FieldErrors* errors);

// Variables that operator or launcher set in every container: a user's value would be lost. Those
// of RINGMASTER_MOUNT_* are reserved too.
const std::set<std::string>& ReservedEnv();
bool IsReservedEnv(const std::string& name);

}  // namespace ringmaster::api
