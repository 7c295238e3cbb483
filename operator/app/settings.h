// The operator's settings: one row for each, read by the command line, the configuration file and
// --help alike.
//
// CLI11 reads the flags; its own checks would know neither the keys of the file nor what is allowed
// in the words of our errors, so the table has both.
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
  double low = 0, high = 0;             // numbers
  std::vector<std::string> words = {};  // texts: only these
  const TextRule* rule = nullptr;       // texts
  bool required = false;                // texts: not empty
};

const std::vector<Setting>& Settings();

// A setting's key in the file: --kube-qps is kubeQps.
std::string KeyOf(const std::string& flag);

}  // namespace ringmaster::app
