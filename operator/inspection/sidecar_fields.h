// Helpers for reading sidecars' answers.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::inspection {

// A tenant's pod may answer anything: no more workers are read than slotsPerWorker allows.
inline constexpr std::size_t kMostWorkers = 1024;

inline int Int(const nlohmann::json& object, const char* name, int otherwise = 0) {
  return static_cast<int>(fields::Integer(object, name, otherwise));
}

}  // namespace ringmaster::inspection
