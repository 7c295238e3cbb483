// The launcher's log: one line on standard error, a constant message and key=value pairs. What is
// wrong begins with "error: "; the operator tells people no other line of the launcher's
// (docs/contracts.md).
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

namespace ringmaster::launcher {

void Log(const std::string& message,
         std::initializer_list<std::pair<const char*, std::string>> fields = {});
void LogError(const std::string& message,
              std::initializer_list<std::pair<const char*, std::string>> fields = {});

}  // namespace ringmaster::launcher
