#include "operator/cli/object_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/cli/yaml_text.h"

namespace ringmaster::cli {

std::string ObjectText::Next(const nlohmann::json& object) {
  const bool first = std::exchange(first_, false);
  if (format_ == OutputFormat::kJson) return object.dump(2) + "\n";
  return (first ? "" : "---\n") + ToYaml(object);
}

}  // namespace ringmaster::cli
