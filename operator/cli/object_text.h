// Objects one after the other as JSON or YAML, so that a program can read each of them. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/cli/commands.h"

namespace ringmaster::cli {

class ObjectText {
 public:
  explicit ObjectText(OutputFormat format) : format_(format) {}  // kJson or kYaml
  // The next one; documents of YAML are separated.
  std::string Next(const nlohmann::json& object);

 private:
  const OutputFormat format_;
  bool first_ = true;
};

}  // namespace ringmaster::cli
