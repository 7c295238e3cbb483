// YAML to JSON as Kubernetes reads it: YAML 1.1 booleans and numbers for plain scalars, quoted
// scalars stay strings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace ringmaster::kube {

// All documents of the text, empty ones left out. The error names line and column.
tl::expected<std::vector<nlohmann::json>, std::string> YamlToJson(std::string_view text);

}  // namespace ringmaster::kube
