#include "sidecar/launcher/log.h"

#include <unistd.h>

namespace ringmaster::launcher {

void Log(const std::string& message,
         std::initializer_list<std::pair<const char*, std::string>> fields) {
  std::string line = "ringmaster-launcher: " + message;
  for (const auto& [key, value] : fields) {
    line += std::string(" ") + key + "=";
    const bool quote = value.find(' ') != std::string::npos;
    line += quote ? "\"" + value + "\"" : value;
  }
  line += "\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void LogError(const std::string& message,
              std::initializer_list<std::pair<const char*, std::string>> fields) {
  Log("error: " + message, fields);
}

}  // namespace ringmaster::launcher
