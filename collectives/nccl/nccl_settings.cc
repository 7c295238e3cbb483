#include "collectives/nccl/nccl_settings.h"

#include <cstdlib>
#include <fstream>
#include <vector>

namespace ringmaster::nccl {
namespace {

constexpr const char* kVariable = "NCCL_COMM_BLOCKING";

// The last value that a file of NCCL's gives the variable: lines are NAME=VALUE, or comments.
std::optional<std::string> ValueIn(const std::string& file) {
  std::ifstream lines(file);
  const std::string begin = std::string(kVariable) + "=";
  std::optional<std::string> value;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(begin)) value = line.substr(begin.size());
  }
  return value;
}

bool IsBlocking(const std::string& value) { return std::strtol(value.c_str(), nullptr, 0) == 1; }

}  // namespace

std::optional<std::string> WhyBlocking(const Environment& environment) {
  std::vector<std::string> files;
  if (const auto named = environment("NCCL_CONF_FILE")) {
    files.push_back(*named);
  } else if (const auto home = environment("HOME")) {
    files.push_back(*home + "/.nccl.conf");
  }
  files.push_back("/etc/nccl.conf");
  std::optional<std::string> value = environment(kVariable);
  std::string where = "the environment";
  for (const std::string& file : files) {
    if (value) break;
    value = ValueIn(file);
    where = file;
  }
  if (!value || !IsBlocking(*value)) return std::nullopt;
  return std::string(kVariable) + " is 1 in " + where +
         ", and a blocking communicator can't be given up when a worker dies";
}

}  // namespace ringmaster::nccl
