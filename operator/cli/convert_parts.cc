#include "operator/cli/convert_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::cli::conversion {
namespace {

const Fields kRunPolicy = {
    {"cleanPodPolicy", kTheSame},
    {"ttlSecondsAfterFinished", kTheSame},
    {"activeDeadlineSeconds", kTheSame},
    {"backoffLimit", kTheSame},
    {"suspend", kTheSame},
    {"schedulingPolicy", kTheSame},
    {"managedBy", "name it again in the new job, if another controller shall look after it"}};
const Fields kSchedulingPolicy = {
    {"queue", kTheSame},
    {"priorityClass", kTheSame},
    {"minAvailable", "spec.elasticPolicy.minReplicas says how many pods are enough"},
    {"minResources", "it follows from the pods"},
    {"scheduleTimeoutSeconds", "a job waits until there is room"}};
// What an API server or kubectl has added is not the user's.
constexpr char kApplied[] = "kubectl.kubernetes.io/last-applied-configuration";
const std::set<std::string> kOfTheServer = {
    "uid",           "resourceVersion", "generation",        "creationTimestamp",
    "managedFields", "selfLink",        "deletionTimestamp", "deletionGracePeriodSeconds"};
const Fields kMetadata = {
    {"name", kTheSame},
    {"namespace", kTheSame},
    {"labels", kTheSame},
    {"annotations", kTheSame},
    {"generateName", "give the new job a name of its own"},
    {"finalizers", "they wait for the old job"},
    {"ownerReferences", "the new job belongs to nothing: name an owner again"}};
const Fields kObject = {
    {"apiVersion", kTheSame}, {"kind", kTheSame}, {"metadata", kTheSame}, {"spec", kTheSame}};

}  // namespace

Json Take(const Json& from, const std::string& path, const Fields& known, Notes* notes) {
  Json taken = Json::object();
  if (!from.is_object()) return taken;
  for (const auto& [name, value] : from.items()) {
    if (value.is_null()) continue;
    const std::string at = path.empty() ? name : path + "." + name;
    const auto field = known.find(name);
    if (field == known.end()) {
      notes->push_back(fmt::format("{}: not carried over: this command doesn't know it", at));
    } else if (field->second == std::string(kTheSame)) {
      taken[name] = value;
    } else {
      notes->push_back(fmt::format("{}: not carried over: {}", at, field->second));
    }
  }
  return taken;
}

Json TakeRunPolicy(const Json& run_policy, Notes* notes) {
  Json taken = Take(run_policy, "spec.runPolicy", kRunPolicy, notes);
  if (!taken.contains("schedulingPolicy")) return taken;
  Json& policy = taken["schedulingPolicy"];
  policy = Take(policy, "spec.runPolicy.schedulingPolicy", kSchedulingPolicy, notes);
  if (policy.empty()) taken.erase("schedulingPolicy");
  return taken;
}

Json JobOf(const Json& job, Json spec, Notes* notes) {
  Json given = job;
  given.erase("status");
  (void)Take(given, "", kObject, notes);
  Json metadata = fields::Object(job, "metadata");
  for (const std::string& name : kOfTheServer) metadata.erase(name);
  metadata = Take(metadata, "metadata", kMetadata, notes);
  if (metadata.contains("annotations") && metadata["annotations"].is_object())
    metadata["annotations"].erase(kApplied);
  return {{"apiVersion", api::kApiVersion},
          {"kind", api::kKind},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

std::string WrongContainers(const Json& pod_template, const std::string& path) {
  const Json& containers = fields::ListAt(pod_template, "/spec/containers");
  if (containers.empty()) return path + ".spec.containers: there is none";
  for (size_t i = 0; i < containers.size(); ++i)
    if (!containers[i].is_object())
      return fmt::format("{}.spec.containers[{}]: must be an object", path, i);
  return "";
}

Words WordsOf(const Json& container) {
  Words words;
  for (const char* field : {"command", "args"})
    for (const Json& word : fields::List(container, field))
      if (word.is_string()) words.push_back(word.get<std::string>());
  return words;
}

std::optional<std::int64_t> NumberIn(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (text.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

void AddVariables(const Json& from, Json* into) {
  if (!into->is_array()) *into = Json::array();
  for (const Json& variable : from) {
    const std::string name = fields::Text(variable, "name");
    const bool there = std::any_of(into->begin(), into->end(), [&](const Json& other) {
      return fields::Text(other, "name") == name;
    });
    if (!there) into->push_back(variable);
  }
}

void DropRestartPolicy(const std::string& path, Json* pod_spec, Notes* notes) {
  if (!pod_spec->contains("restartPolicy") || pod_spec->at("restartPolicy") == "Never") return;
  pod_spec->erase("restartPolicy");
  notes->push_back(path +
                   ".restartPolicy: not carried over: workers are restarted in place, see "
                   "spec.failurePolicy");
}

std::string OneSizeNote(const std::string& kind) {
  return fmt::format(
      "spec.elasticPolicy: as {}, of one size. With a smaller minReplicas the job goes on while a "
      "pod is replaced, with a larger maxReplicas it can grow",
      kind);
}

}  // namespace ringmaster::cli::conversion
