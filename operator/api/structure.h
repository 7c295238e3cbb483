// Checks a value against a structural schema of a CRD and reports errors in the parser's words: it
// refuses the fields that the API server would refuse, under the same paths. Pure.
#pragma once

#include <string>

#include "operator/api/field_error.h"

namespace ringmaster::api {

void CheckStructure(const Json& schema, const Json& value, const std::string& path,
                    FieldErrors* errors);

}  // namespace ringmaster::api
