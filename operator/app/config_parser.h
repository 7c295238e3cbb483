// Reads what the operator is told: by flags, by a config file (YAML, the flags' names in
// camelCase), by defaults; flags win over the file.
//
// Thread rule: free functions.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "operator/app/operator_config.h"

namespace ringmaster::app {

// The process ends with this: --help, --version, --print-config, or what is wrong.
struct ConfigExit {
  int code = 0;
  std::string text;  // to stdout if code is 0, else to stderr
};

tl::expected<OperatorConfig, ConfigExit> ParseCommandLine(int argc, const char* const* argv);

// Puts what a config file says into `config`. The error names the key, the value and what is
// allowed.
tl::expected<void, std::string> ApplyConfigFile(std::string_view yaml, OperatorConfig* config);

// A config file that says all of this.
std::string ToYaml(const OperatorConfig& config);

}  // namespace ringmaster::app
