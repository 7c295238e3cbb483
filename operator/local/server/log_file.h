// Where the log of a container is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "operator/local/store/status.h"

namespace ringmaster::local {

struct LogFile {
  std::filesystem::path file;
  uint64_t offset = 0;
  bool running = false;
  // Where the container's process before the current or last one began; it goes to `offset`.
  std::optional<uint64_t> previous = {};
};

// The log of a container ("" the only one), or a Status. Called again and again while somebody
// follows.
using FindLog = std::function<Answer<LogFile>(const std::string& ns, const std::string& pod,
                                              const std::string& container)>;

}  // namespace ringmaster::local
