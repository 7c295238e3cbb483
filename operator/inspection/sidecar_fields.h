// What the readers of sidecars' answers share.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::inspection {

// A pod of a tenant may answer anything: of its workers no more are read than slotsPerWorker
// allows.
inline constexpr std::size_t kMostWorkers = 1024;

inline int Int(const nlohmann::json& object, const char* name, int otherwise = 0) {
  return static_cast<int>(fields::Integer(object, name, otherwise));
}

}  // namespace ringmaster::inspection
