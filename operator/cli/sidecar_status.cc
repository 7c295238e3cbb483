#include "operator/cli/sidecar_status.h"

#include <nlohmann/json.hpp>

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

const Json& Member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string Text(const Json& object, const char* name) {
  const Json& value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

template <class T>
T Number(const Json& object, const char* name, T otherwise = 0) {
  const Json& value = Member(object, name);
  return value.is_number() ? value.get<T>() : otherwise;
}

bool Flag(const Json& object, const char* name) {
  const Json& value = Member(object, name);
  return value.is_boolean() && value.get<bool>();
}

std::vector<std::string> Texts(const Json& object, const char* name) {
  std::vector<std::string> texts;
  for (const Json& value : Member(object, name))
    if (value.is_string()) texts.push_back(value.get<std::string>());
  return texts;
}

std::map<std::string, double> Numbers(const Json& object, const char* name) {
  std::map<std::string, double> numbers;
  const Json& values = Member(object, name);
  if (!values.is_object()) return numbers;
  for (const auto& [key, value] : values.items())
    if (value.is_number()) numbers[key] = value.get<double>();
  return numbers;
}

void ParseView(const Json& view, SidecarStatus* out) {
  out->view_reason = Text(view, "reason");
  for (const Json& pod : Member(view, "pods")) out->pods.push_back(Text(pod, "name"));
  for (const Json& rank : Member(view, "ranks")) {
    size_t index = Number<size_t>(rank, "pod");
    out->ranks.push_back({index < out->pods.size() ? out->pods[index] : "",
                          Number<int>(rank, "slot"), Number<uint64_t>(rank, "incarnation")});
  }
}

WorkerStatus ParseWorker(const Json& w) {
  return {.slot = Number<int>(w, "slot"),
          .incarnation = Number<uint64_t>(w, "incarnation"),
          .pid = Number<int>(w, "pid"),
          .rank = Number<int>(w, "rank", -1),
          .state = Text(w, "state"),
          .step = Number<uint64_t>(w, "step"),
          .standby = Flag(w, "standby")};
}

Rebuild ParseRebuild(const Json& r) {
  return {.epoch = Number<uint64_t>(r, "epoch"),
          .parent = Number<uint64_t>(r, "parent"),
          .reason = Text(r, "reason"),
          .planned = Flag(r, "planned"),
          .world_size = Number<int>(r, "worldSize"),
          .members = Texts(r, "members"),
          .left = Texts(r, "left"),
          .joined = Texts(r, "joined"),
          .seconds = Numbers(r, "seconds"),
          .steps_lost = Number<int64_t>(r, "stepsLost")};
}

}  // namespace

std::optional<SidecarStatus> ParseSidecarStatus(const Json& text) {
  const Json& pod = Member(text, "pod");
  if (!pod.is_object()) return std::nullopt;
  SidecarStatus status;
  status.job = Text(Member(text, "job"), "name");
  status.pod = Text(pod, "name");
  status.coordinator = Flag(text, "coordinator");
  status.state = Text(text, "state");
  status.epoch = Number<uint64_t>(text, "epoch");
  ParseView(Member(text, "view"), &status);
  for (const Json& worker : Member(text, "workers")) status.workers.push_back(ParseWorker(worker));
  for (const Json& exit : Member(text, "exits")) {
    status.exits.push_back({Number<int>(exit, "slot"), Number<uint64_t>(exit, "incarnation"),
                            Number<int>(exit, "exitCode"), Number<int>(exit, "signal")});
  }
  const Json& progress = Member(text, "progress");
  status.step = Number<uint64_t>(progress, "step");
  status.values = Numbers(progress, "values");
  status.samples_per_second = Number<double>(progress, "samplesPerSecond");
  for (const Json& rebuild : Member(text, "rebuilds"))
    status.rebuilds.push_back(ParseRebuild(rebuild));
  return status;
}

}  // namespace ringmaster::cli
