// Writes JSON values as YAML, for people: block style, with plain scalars where a YAML 1.1 reader
// returns the same value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::cli {

std::string ToYaml(const nlohmann::json& value);

}  // namespace ringmaster::cli
