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
  for (const Json& exit : Member(text, "exits"))
    status.exits.push_back(job::WorkerExitFromJson(exit));
  const Json& progress = Member(text, "progress");
  status.step = Number<uint64_t>(progress, "step");
  status.values = Numbers(progress, "values");
  status.samples_per_second = Number<double>(progress, "samplesPerSecond");
  for (const Json& entry : Member(text, "rebuilds"))
    if (auto rebuild = job::RebuildFromJson(entry)) status.rebuilds.push_back(std::move(*rebuild));
  return status;
}

}  // namespace ringmaster::cli
