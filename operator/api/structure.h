// Checks a value against a structural schema as CRDs have it, in the words of the parser: where the
// API server would refuse a field, so is it here, under the same path. Pure.
#pragma once

#include <string>

#include "operator/api/field_error.h"

namespace ringmaster::api {

void CheckStructure(const Json& schema, const Json& value, const std::string& path,
                    FieldErrors* errors);

}  // namespace ringmaster::api
