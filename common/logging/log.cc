#include "common/logging/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

namespace ringmaster::logging {
namespace {

using Json = nlohmann::ordered_json;

bool IsKeyChar(char c, bool first) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalpha(u) != 0 || c == '_' || (!first && std::isdigit(u) != 0);
}

// The length of "key=" at the beginning of the text, 0 if it doesn't begin with one.
std::size_t KeyAt(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && IsKeyChar(text[at], at == 0)) ++at;
  return at > 0 && at < text.size() && text[at] == '=' ? at + 1 : 0;
}

// Where " key=" begins, or the end of the text.
std::size_t NextPair(std::string_view text) {
  for (std::size_t at = text.find(' '); at != std::string_view::npos; at = text.find(' ', at + 1)) {
    if (KeyAt(text.substr(at + 1)) > 0) return at;
  }
  return text.size();
}

// The end of a value that begins with a quote; 0 if there is none. It is behind the first quote
// that another pair or the end of the text follows, because quotes inside are not always escaped.
std::size_t EndOfQuoted(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      const std::string_view rest = text.substr(at + 1);
      if (rest.empty() || (rest[0] == ' ' && KeyAt(rest.substr(1)) > 0)) return at + 1;
    }
  }
  return 0;
}

std::string Unquoted(std::string_view text) {
  std::string out;
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    const bool escape =
        text[at] == '\\' && at + 2 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\');
    if (escape) ++at;
    out += text[at];
  }
  return out;
}

// Whole numbers become JSON numbers. All else stays text: 1.10 is an epoch, not the number 1.1.
Json ToJson(const std::string& value) {
  const bool digits = !value.empty() && value.size() <= 15 &&
                      std::all_of(value.begin(), value.end(),
                                  [](unsigned char c) { return std::isdigit(c) != 0; }) &&
                      (value.size() == 1 || value[0] != '0');
  if (digits) return std::stoll(value);
  return value;
}

spdlog::level::level_enum LevelOf(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      break;
  }
  return spdlog::level::err;
}

const char* LevelName(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warning";
    default:
      return "error";
  }
}

class LineFormatter : public spdlog::formatter {
 public:
  explicit LineFormatter(Options options) : options_(std::move(options)) {}

  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const std::string_view text(msg.payload.data(), msg.payload.size());
    const std::string line = options_.format == "json" ? JsonLine(msg, text) : TextLine(msg, text);
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(options_);
  }

 private:
  std::string TextLine(const spdlog::details::log_msg& msg, std::string_view text) const {
    std::string fixed;
    for (const auto& [key, value] : options_.fields) {
      fixed += key + "=" + Value(value) + " ";
    }
    std::string line =
        fmt::format("{} {} {}{}", FormatTime(msg.time), LevelName(msg.level), fixed, text);
    // Each entry is one line, even if an error message in it has line ends.
    std::replace(line.begin(), line.end(), '\n', ' ');
    return line + "\n";
  }
  std::string JsonLine(const spdlog::details::log_msg& msg, std::string_view text) const {
    const Line line = ParseLine(text);
    Json json = {
        {"ts", FormatTime(msg.time)}, {"level", LevelName(msg.level)}, {"msg", line.message}};
    for (const Fields* fields : {&options_.fields, &line.fields}) {
      for (const auto& [key, value] : *fields) {
        // A field must not replace one that every line has.
        const bool taken = key == "ts" || key == "level" || key == "msg";
        json[taken ? key + "_" : key] = ToJson(value);
      }
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  const Options options_;
};

template <std::size_t n>
bool IsOneOf(const std::string& word, const char* const (&words)[n]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

}  // namespace

std::string FormatTime(std::chrono::system_clock::time_point time) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)), ms % 1000);
}

void Write(Level level, fmt::string_view format, fmt::format_args arguments) {
  spdlog::logger* const logger = spdlog::default_logger_raw();
  if (!logger->should_log(LevelOf(level))) return;
  logger->log(LevelOf(level), fmt::vformat(format, arguments));
}

void Flush() { spdlog::default_logger_raw()->flush(); }

std::string Value(std::string_view text) {
  const bool plain =
      !text.empty() && text.front() != '"' &&
      std::none_of(text.begin(), text.end(), [](unsigned char c) { return c <= ' ' || c == '"'; });
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

Line ParseLine(std::string_view text) {
  Line line;
  std::size_t begin = KeyAt(text) > 0 ? 0 : NextPair(text);
  line.message = std::string(text.substr(0, begin));
  text.remove_prefix(std::min(begin + (begin > 0 ? 1 : 0), text.size()));
  while (!text.empty()) {
    const std::size_t key = KeyAt(text);
    std::string_view value = text.substr(key);
    std::size_t end = !value.empty() && value[0] == '"' ? EndOfQuoted(value) : 0;
    const bool quoted = end > 0;
    if (!quoted) end = NextPair(value);
    line.fields.emplace_back(std::string(text.substr(0, key - 1)),
                             quoted ? Unquoted(value.substr(0, end)) : value.substr(0, end));
    text.remove_prefix(std::min(key + end + 1, text.size()));
  }
  return line;
}

tl::expected<void, std::string> Begin(const Options& options) {
  if (!IsOneOf(options.format, kFormats)) {
    return tl::unexpected(fmt::format("log format \"{}\": allowed are {}", options.format,
                                      fmt::join(kFormats, ", ")));
  }
  if (!IsOneOf(options.level, kLevels)) {
    return tl::unexpected(
        fmt::format("log level \"{}\": allowed are {}", options.level, fmt::join(kLevels, ", ")));
  }
  auto logger =
      std::make_shared<spdlog::logger>("main", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(std::make_unique<LineFormatter>(options));
  logger->set_level(spdlog::level::from_str(options.level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace ringmaster::logging
