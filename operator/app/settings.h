// The operator's settings: one row each, used by the command line, the configuration file and
// --help.
//
// CLI11 parses the flags. Its own checks know neither the file's keys nor our error messages, so
// the table contains the rules, too.
//
// Thread rule: constants and free functions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "operator/app/operator_config.h"
#include "operator/app/setting_texts.h"

namespace ringmaster::app {

template <class T>
using Field = T OperatorConfig::*;

struct Setting {
  const char* flag;  // without the dashes
  std::variant<Field<std::string>, Field<int>, Field<double>, Field<bool>> field;
  const char* help;
  double low = 0, high = 0;             // for numbers
  std::vector<std::string> words = {};  // for texts: the allowed ones
  const TextRule* rule = nullptr;       // for texts
  bool required = false;                // for texts: must not be empty
};

const std::vector<Setting>& Settings();

// A setting's key in the file: --kube-qps is kubeQps.
std::string KeyOf(const std::string& flag);

}  // namespace ringmaster::app
