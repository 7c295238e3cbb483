// Where the log of a container is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "operator/local/store/status.h"

namespace ringmaster::local {

struct LogFile {
  std::filesystem::path file;
  uint64_t offset = 0;
  bool running = false;
};

// The log of a container ("" the only one), or a Status. Called again and again while somebody
// follows.
using FindLog = std::function<Answer<LogFile>(const std::string& ns, const std::string& pod,
                                              const std::string& container)>;

}  // namespace ringmaster::local
