// An integer field for which an `int` is large enough, read leniently as in fields.h.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::fields {

// A number that does not fit into an `int` counts as absent.
inline int Int(const Json& object, const char* name, int otherwise = 0) {
  const std::int64_t number = Integer(object, name, otherwise);
  return std::in_range<int>(number) ? static_cast<int>(number) : otherwise;
}

}  // namespace ringmaster::fields
