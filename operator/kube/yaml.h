// Converts YAML to JSON as Kubernetes does: plain scalars may be YAML 1.1 booleans and numbers,
// quoted scalars stay strings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::kube {

// Returns all non-empty documents of the text. The error names line and column.
tl::expected<std::vector<nlohmann::json>, std::string> YamlToJson(std::string_view text);

}  // namespace ringmaster::kube
