#include "common/job/worker_times.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::job {
namespace {

double Seconds(const nlohmann::json& json, const char* name) {
  return std::max(fields::Number(json, name), 0.0);
}

}  // namespace

nlohmann::json ToJson(const WorkerTimes& times) {
  return {{"seconds", times.seconds},
          {"blocked", times.blocked},
          {"waiting", times.waiting},
          {"running", times.running},
          {"bytes", times.bytes}};
}

WorkerTimes WorkerTimesFromJson(const nlohmann::json& json) {
  return {.seconds = Seconds(json, "seconds"),
          .blocked = Seconds(json, "blocked"),
          .waiting = Seconds(json, "waiting"),
          .running = Seconds(json, "running"),
          .bytes = fields::Unsigned(json, "bytes")};
}

WorkerTimes Between(const WorkerTimes& earlier, const WorkerTimes& later) {
  if (later.seconds < earlier.seconds) return later;
  const auto grown = [](auto from, auto to) { return to < from ? to : to - from; };
  return {.seconds = grown(earlier.seconds, later.seconds),
          .blocked = grown(earlier.blocked, later.blocked),
          .waiting = grown(earlier.waiting, later.waiting),
          .running = grown(earlier.running, later.running),
          .bytes = grown(earlier.bytes, later.bytes)};
}

}  // namespace ringmaster::job
