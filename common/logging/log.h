// How the programs write their logs: one line for each thing that happens, with a constant message
// followed by key=value pairs, as text or as a JSON object.
//
//   logging::Warn("pod not created job={} pod={} error={}", key, pod, logging::Value(why));
//
//   2026-01-02T03:04:05.678Z warning pod not created job=default/digits pod=w-0 error="no room"
//   {"ts":"2026-01-02T03:04:05.678Z","level":"warning","msg":"pod not created",
//    "job":"default/digits","pod":"w-0","error":"no room"}
//
// These functions instantiate little, because many files log: a line's text is made in log.cc.
//
// Thread rule: call Begin once, in main(), before other threads start; all else from any thread.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace ringmaster::logging {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Options {
  std::string format = "text";  // text, json
  std::string level = "info";   // debug, info, warning, error
  Fields fields;                // added to every line, e.g. the pod
};

inline constexpr const char* kFormats[] = {"text", "json"};
inline constexpr const char* kLevels[] = {"debug", "info", "warning", "error"};

// Everything that is logged after this call goes to stderr in this form. An error names the value
// and what is allowed.
tl::expected<void, std::string> Begin(const Options& options);

enum class Level { kDebug, kInfo, kWarning, kError };

// Writes a line if lines of this level are written.
void Write(Level level, fmt::string_view format, fmt::format_args arguments);

template <typename... Arguments>
void Debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kDebug, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void Info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kInfo, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void Warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kWarning, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void Error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  Write(Level::kError, format, fmt::make_format_args(arguments...));
}

// Returns when all lines so far are written. Call it before a process ends without its destructors.
void Flush();

// The value for a key={} of a message: as it is, or in quotes if it contains blanks or quotes,
// which would hide where it ends, or is empty.
std::string Value(std::string_view text);

// The parts of a line: its message and the key=value pairs that follow it. Text that is part of no
// pair belongs to the value before it, so nothing is lost.
struct Line {
  std::string message;
  Fields fields;
};
Line ParseLine(std::string_view text);

// Milliseconds, UTC: 2026-01-02T03:04:05.678Z
std::string FormatTime(std::chrono::system_clock::time_point time);

}  // namespace ringmaster::logging
