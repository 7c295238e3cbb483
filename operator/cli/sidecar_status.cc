#include "operator/cli/sidecar_status.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

int Int(const Json& object, const char* name, int otherwise = 0) {
  return static_cast<int>(fields::Integer(object, name, otherwise));
}

std::map<std::string, double> Numbers(const Json& object, const char* name) {
  std::map<std::string, double> numbers;
  const Json& values = fields::Member(object, name);
  if (!values.is_object()) return numbers;
  for (const auto& [key, value] : values.items())
    if (value.is_number()) numbers[key] = value.get<double>();
  return numbers;
}

void ParseView(const Json& view, SidecarStatus* out) {
  out->view_reason = fields::Text(view, "reason");
  for (const Json& pod : fields::Member(view, "pods"))
    out->pods.push_back(fields::Text(pod, "name"));
  for (const Json& rank : fields::Member(view, "ranks")) {
    size_t index = fields::Unsigned(rank, "pod");
    out->ranks.push_back({index < out->pods.size() ? out->pods[index] : "", Int(rank, "slot"),
                          fields::Unsigned(rank, "incarnation")});
  }
}

WorkerStatus ParseWorker(const Json& w) {
  return {.slot = Int(w, "slot"),
          .incarnation = fields::Unsigned(w, "incarnation"),
          .pid = Int(w, "pid"),
          .rank = Int(w, "rank", -1),
          .state = fields::Text(w, "state"),
          .step = fields::Unsigned(w, "step"),
          .standby = fields::Flag(w, "standby")};
}

Rebuild ParseRebuild(const Json& r) {
  return {.epoch = fields::Unsigned(r, "epoch"),
          .parent = fields::Unsigned(r, "parent"),
          .reason = fields::Text(r, "reason"),
          .planned = fields::Flag(r, "planned"),
          .world_size = Int(r, "worldSize"),
          .members = fields::Texts(r, "members"),
          .left = fields::Texts(r, "left"),
          .joined = fields::Texts(r, "joined"),
          .seconds = Numbers(r, "seconds"),
          .steps_lost = fields::Integer(r, "stepsLost")};
}

}  // namespace

std::optional<SidecarStatus> ParseSidecarStatus(const Json& text) {
  const Json& pod = fields::Member(text, "pod");
  if (!pod.is_object()) return std::nullopt;
  SidecarStatus status;
  status.job = fields::Text(fields::Member(text, "job"), "name");
  status.pod = fields::Text(pod, "name");
  status.coordinator = fields::Flag(text, "coordinator");
  status.state = fields::Text(text, "state");
  status.epoch = fields::Unsigned(text, "epoch");
  ParseView(fields::Member(text, "view"), &status);
  for (const Json& worker : fields::Member(text, "workers"))
    status.workers.push_back(ParseWorker(worker));
  for (const Json& exit : fields::Member(text, "exits")) {
    status.exits.push_back({Int(exit, "slot"), fields::Unsigned(exit, "incarnation"),
                            Int(exit, "exitCode"), Int(exit, "signal")});
  }
  const Json& progress = fields::Member(text, "progress");
  status.step = fields::Unsigned(progress, "step");
  status.values = Numbers(progress, "values");
  status.samples_per_second = fields::Number(progress, "samplesPerSecond");
  for (const Json& rebuild : fields::Member(text, "rebuilds"))
    status.rebuilds.push_back(ParseRebuild(rebuild));
  return status;
}

}  // namespace ringmaster::cli
