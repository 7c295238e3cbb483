// Points in time as the API writes them.
#pragma once

#include <chrono>
#include <ctime>
#include <string>

namespace ringmaster::local {

// "2026-01-31T12:00:00Z"
inline std::string Timestamp(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace ringmaster::local
