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
          .times = job::WorkerTimesFromJson(fields::Member(w, "times")),
          .standby = fields::Flag(w, "standby"),
          .takes_state = fields::Flag(w, "takesState", true)};
}

}  // namespace

std::optional<SidecarStatus> ParseSidecarStatus(const Json& text) {
  const Json& pod = fields::Member(text, "pod");
  if (!pod.is_object()) return std::nullopt;
  SidecarStatus status;
  status.version = fields::Text(text, "version");
  status.job = fields::Text(fields::Member(text, "job"), "name");
  status.pod = fields::Text(pod, "name");
  status.coordinator = fields::Flag(text, "coordinator");
  status.state = fields::Text(text, "state");
  status.epoch = fields::Unsigned(text, "epoch");
  ParseView(fields::Member(text, "view"), &status);
  for (const Json& worker : fields::List(text, "workers"))
    status.workers.push_back(ParseWorker(worker));
  for (const Json& exit : fields::List(text, "exits"))
    status.exits.push_back(job::WorkerExitFromJson(exit));
  for (const Json& slot : fields::List(text, "missingSlots"))
    if (slot.is_number_integer()) status.missing_slots.push_back(slot.get<int>());
  status.operator_connected = fields::Flag(text, "operatorConnected", true);
  status.stalls = job::StallsFromJson(fields::Member(text, "stalls"));
  for (const Json& link : fields::List(text, "brokenLinks"))
    status.broken_links.push_back(
        {fields::Text(link, "pod"), Int(link, "breaks"), fields::Flag(link, "kept")});
  status.history_since = static_cast<int64_t>(fields::Unsigned(text, "historySince"));
  const Json& progress = fields::Member(text, "progress");
  status.step = fields::Unsigned(progress, "step");
  status.values = Numbers(progress, "values");
  status.samples_per_second = fields::Number(progress, "samplesPerSecond");
  for (const Json& entry : fields::List(text, "rebuilds"))
    if (auto rebuild = job::RebuildFromJson(entry)) status.rebuilds.push_back(std::move(*rebuild));
  return status;
}

}  // namespace ringmaster::cli
