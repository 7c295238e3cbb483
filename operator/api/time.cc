#include "operator/api/time.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "common/wall_time/wall_time.h"

namespace ringmaster::api {
namespace {

std::tm Utc(Time time) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return parts;
}

std::string Format(Time time, const std::string& fraction) {
  const std::tm t = Utc(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, fraction);
}

}  // namespace

std::string FormatTime(Time time) { return Format(time, ""); }

std::string FormatMicroTime(Time time) {
  const auto rest = time - std::chrono::floor<std::chrono::seconds>(time);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(rest).count();
  return Format(time, fmt::format(".{:06}", micros));
}

std::optional<Time> ParseTime(const std::string& text) {
  if (text.empty()) return std::nullopt;  // the usual case: what hasn't happened has no time
  std::tm t{};
  int used = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
                  &t.tm_hour, &t.tm_min, &t.tm_sec, &used) != 6) {
    return std::nullopt;
  }
  t.tm_year -= 1900;
  t.tm_mon -= 1;
  std::size_t at = static_cast<std::size_t>(used);
  double fraction = 0;
  if (at < text.size() && text[at] == '.') {
    double unit = 0.1;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) {
      fraction += (text[at] - '0') * unit;
    }
  }
  if (text.substr(at) != "Z") return std::nullopt;
  return wall_time::FromUnixSeconds(timegm(&t)) +
         std::chrono::microseconds(static_cast<std::int64_t>(fraction * 1e6 + 0.5));
}

}  // namespace ringmaster::api
