// Times as Kubernetes writes them: RFC 3339 in UTC.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace ringmaster::api {

using Time = std::chrono::system_clock::time_point;

std::string FormatTime(Time time);       // 2026-01-31T12:00:00Z
std::string FormatMicroTime(Time time);  // 2026-01-31T12:00:00.000000Z, for events
// Accepts times with or without a fraction; nullopt for anything else.
std::optional<Time> ParseTime(const std::string& text);

}  // namespace ringmaster::api
