// Helpers for reading sidecars' answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::inspection {

// A tenant's pod may answer anything: no more workers are read than slotsPerWorker allows.
inline constexpr std::size_t kMostWorkers = 1024;

// A number that doesn't fit counts as absent.
inline int Int(const nlohmann::json& object, const char* name, int otherwise = 0) {
  const std::int64_t number = fields::Integer(object, name, otherwise);
  return std::in_range<int>(number) ? static_cast<int>(number) : otherwise;
}

}  // namespace ringmaster::inspection
