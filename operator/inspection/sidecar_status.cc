#include "operator/inspection/sidecar_status.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/fields/int.h"
#include "common/plain_text/plain_text.h"
#include "operator/inspection/answer_limits.h"

namespace ringmaster::inspection {
namespace {

using fields::Int;
using Json = nlohmann::json;

// Limits for a sidecar's answer, because a tenant's pod may answer anything. Real answers are
// smaller.
constexpr size_t kLongestText = 253;  // the longest name in Kubernetes
constexpr size_t kLongestValueName = 64;
constexpr size_t kMostValues = 64;
constexpr size_t kMostOfView = 10'000;
constexpr size_t kMostRebuilds = 1000;
constexpr size_t kMostEntries = 1024;  // for every other list

std::string Cut(std::string text, size_t longest) {
  return plain_text::Cut(plain_text::WithoutControls(std::move(text)), longest);
}

std::string TextOf(const Json& object, const char* name) {
  return ShortText(fields::Text(object, name));
}

// Calls `act` for the first `most` elements of a list.
template <class Act>
void ForFirst(const Json& list, size_t most, const Act& act) {
  for (size_t i = 0; i < std::min(most, list.size()); ++i) act(list[i]);
}

std::map<std::string, double> Numbers(const Json& object, const char* name) {
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : fields::Object(object, name).items()) {
    if (numbers.size() == kMostValues) break;
    if (value.is_number()) numbers[ValueName(key)] = value.get<double>();
  }
  return numbers;
}

void ParseView(const Json& view, SidecarStatus* out) {
  out->view_reason = TextOf(view, "reason");
  ForFirst(fields::List(view, "pods"), kMostOfView,
           [&](const Json& pod) { out->pods.push_back(TextOf(pod, "name")); });
  ForFirst(fields::List(view, "ranks"), kMostOfView, [&](const Json& rank) {
    size_t index = fields::Unsigned(rank, "pod");
    out->ranks.push_back({index < out->pods.size() ? out->pods[index] : "", Int(rank, "slot"),
                          fields::Unsigned(rank, "incarnation")});
  });
}

void Shorten(std::vector<std::string>* texts) {
  for (std::string& text : *texts) text = ShortText(std::move(text));
}

// The newest ones, which come last.
std::vector<job::Rebuild> ParseRebuilds(const Json& list) {
  std::vector<job::Rebuild> rebuilds;
  for (size_t i = list.size() - std::min(kMostRebuilds, list.size()); i < list.size(); ++i) {
    auto rebuild = job::RebuildFromJson(list[i]);
    if (!rebuild) continue;
    rebuild->reason = ShortText(std::move(rebuild->reason));
    for (auto* names : {&rebuild->members, &rebuild->left, &rebuild->joined}) Shorten(names);
    rebuilds.push_back(std::move(*rebuild));
  }
  return rebuilds;
}

std::vector<job::Stall> ParseStalls(const Json& list) {
  std::vector<job::Stall> stalls = job::StallsFromJson(list);
  for (job::Stall& stall : stalls) {
    stall.tensor = ShortText(std::move(stall.tensor));
    Shorten(&stall.pods);
  }
  return stalls;
}

std::vector<job::GpuHealth> ParseGpus(const Json& list) {
  std::vector<job::GpuHealth> gpus = job::GpusFromJson(list);
  for (job::GpuHealth& gpu : gpus) {
    gpu.gpu = ShortText(std::move(gpu.gpu));
    gpu.failing = ShortText(std::move(gpu.failing));
    Shorten(&gpu.warnings);
  }
  return gpus;
}

WorkerStatus ParseWorker(const Json& w) {
  return {.slot = Int(w, "slot"),
          .incarnation = fields::Unsigned(w, "incarnation"),
          .pid = Int(w, "pid"),
          .rank = Int(w, "rank", -1),
          .state = TextOf(w, "state"),
          .library = TextOf(w, "library"),
          .step = fields::Unsigned(w, "step"),
          .times = job::WorkerTimesFromJson(fields::Member(w, "times")),
          .standby = fields::Flag(w, "standby"),
          .takes_state = fields::Flag(w, "takesState", true)};
}

}  // namespace

std::string ShortText(std::string text) { return Cut(std::move(text), kLongestText); }

std::string ValueName(const std::string& name) { return Cut(name, kLongestValueName); }

std::optional<SidecarStatus> ParseSidecarStatus(const Json& text) {
  const Json& pod = fields::Member(text, "pod");
  if (!pod.is_object()) return std::nullopt;
  SidecarStatus status;
  status.version = TextOf(text, "version");
  status.job = TextOf(fields::Member(text, "job"), "name");
  status.pod = TextOf(pod, "name");
  status.coordinator = fields::Flag(text, "coordinator");
  status.state = TextOf(text, "state");
  status.epoch = fields::Unsigned(text, "epoch");
  ParseView(fields::Member(text, "view"), &status);
  ForFirst(fields::List(text, "workers"), kMostWorkers,
           [&](const Json& worker) { status.workers.push_back(ParseWorker(worker)); });
  ForFirst(fields::List(text, "exits"), kMostEntries,
           [&](const Json& exit) { status.exits.push_back(job::WorkerExitFromJson(exit)); });
  ForFirst(fields::List(text, "missingSlots"), kMostEntries, [&](const Json& slot) {
    if (slot.is_number_integer()) status.missing_slots.push_back(slot.get<int>());
  });
  status.operator_connected = fields::Flag(text, "operatorConnected", true);
  status.stalls = ParseStalls(fields::Member(text, "stalls"));
  status.gpus = ParseGpus(fields::Member(text, "gpus"));
  ForFirst(fields::List(text, "brokenLinks"), kMostEntries, [&](const Json& link) {
    status.broken_links.push_back(
        {TextOf(link, "pod"), Int(link, "breaks"), fields::Flag(link, "kept")});
  });
  status.history_since = static_cast<int64_t>(fields::Unsigned(text, "historySince"));
  const Json& progress = fields::Member(text, "progress");
  status.step = fields::Unsigned(progress, "step");
  status.values = Numbers(progress, "values");
  status.samples_per_second = fields::Number(progress, "samplesPerSecond");
  status.rebuilds = ParseRebuilds(fields::List(text, "rebuilds"));
  return status;
}

}  // namespace ringmaster::inspection
