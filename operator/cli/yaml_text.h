// JSON values as YAML text, for people: block style, plain scalars where a YAML 1.1 reader gives
// the same value back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::cli {

std::string ToYaml(const nlohmann::json& value);

}  // namespace ringmaster::cli
