#include "common/job/rebuild.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::job {

nlohmann::json ToJson(const PhaseSeconds& seconds) {
  nlohmann::json json = nlohmann::json::object();
  for (const char* phase : kPhases) {
    const auto it = seconds.find(phase);
    json[phase] = it == seconds.end() ? 0.0 : it->second;
  }
  return json;
}

nlohmann::json ToJson(const Rebuild& rebuild) {
  return {{"epoch", rebuild.epoch},          {"parent", rebuild.parent},
          {"reason", rebuild.reason},        {"planned", rebuild.planned},
          {"atUnixMs", rebuild.at_unix_ms},  {"worldSize", rebuild.world_size},
          {"members", rebuild.members},      {"left", rebuild.left},
          {"joined", rebuild.joined},        {"seconds", ToJson(rebuild.seconds)},
          {"stepsLost", rebuild.steps_lost}, {"complete", rebuild.complete}};
}

PhaseSeconds PhaseSecondsFromJson(const nlohmann::json& json) {
  PhaseSeconds seconds;
  for (const char* phase : kPhases) {
    const nlohmann::json& value = fields::Member(json, phase);
    if (value.is_number()) seconds[phase] = value.get<double>();
  }
  return seconds;
}

std::optional<Rebuild> RebuildFromJson(const nlohmann::json& json) {
  const nlohmann::json& epoch = fields::Member(json, "epoch");
  if (!epoch.is_number_integer() || epoch < 0) return std::nullopt;
  return Rebuild{.epoch = fields::Unsigned(json, "epoch"),
                 .parent = fields::Unsigned(json, "parent"),
                 .reason = fields::Text(json, "reason"),
                 .planned = fields::Flag(json, "planned"),
                 .at_unix_ms = fields::Integer(json, "atUnixMs"),
                 .world_size = static_cast<int>(fields::Integer(json, "worldSize")),
                 .members = fields::Texts(json, "members"),
                 .left = fields::Texts(json, "left"),
                 .joined = fields::Texts(json, "joined"),
                 .seconds = PhaseSecondsFromJson(fields::Member(json, "seconds")),
                 .steps_lost = fields::Integer(json, "stepsLost"),
                 .complete = fields::Flag(json, "complete")};
}

double TotalSeconds(const PhaseSeconds& seconds) {
  double total = 0;
  for (const auto& [phase, value] : seconds) {
    if (phase != kStop) total += value;
  }
  return total;
}

void KeepLongest(const PhaseSeconds& seen, PhaseSeconds* longest) {
  for (const auto& [phase, value] : seen) {
    double& known = (*longest)[phase];
    known = std::max(known, value);
  }
}

}  // namespace ringmaster::job
