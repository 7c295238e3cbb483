#include "operator/inspection/troubles.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "common/fields/fields.h"
#include "operator/api/labels.h"

namespace ringmaster::inspection {
namespace {

using Json = nlohmann::json;

// Conditions that are False if there is a problem, in the order of a job's start: the problem that
// keeps pods from being created explains why they have no node.
constexpr const char* kWantedTrue[] = {"Created", "Scheduled", "Started", "Running"};

bool IsWantedTrue(const std::string& type) {
  return std::find(std::begin(kWantedTrue), std::end(kWantedTrue), type) != std::end(kWantedTrue);
}

Trouble TroubleOf(const Json& condition) {
  return {fields::Text(condition, "type"), fields::Text(condition, "reason"),
          fields::Text(condition, "message"), fields::Text(condition, "lastTransitionTime")};
}

// The last line of a container's termination message.
std::string LastLine(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.find_last_of("\r\n") + 1);
}

void AddContainer(const Json& status, std::vector<std::string>* parts) {
  const std::string name = fields::Text(status, "name");
  const Json& state = fields::Member(status, "state");
  const Json& waiting = fields::Member(state, "waiting");
  const std::string reason = fields::Text(waiting, "reason");
  if (waiting.is_object() && reason != "ContainerCreating" && reason != "PodInitializing") {
    parts->push_back(
        fmt::format("container {} waits: {} {}", name, reason, fields::Text(waiting, "message")));
  }
  const Json& ended = fields::Member(state, "terminated");
  const auto code = fields::Integer(ended, "exitCode");
  if (!ended.is_object() || code == 0) return;
  const std::string said = LastLine(fields::Text(ended, "message"));
  parts->push_back(
      fmt::format("container {} ended with {}{}", name, code, said.empty() ? "" : ": " + said));
}

void AddScheduling(const Json& pod, std::vector<std::string>* parts) {
  for (const Json& condition : fields::ListAt(pod, "/status/conditions")) {
    if (fields::Text(condition, "type") != "PodScheduled" ||
        fields::Text(condition, "status") != "False")
      continue;
    const std::string message = fields::Text(condition, "message");
    parts->push_back(fmt::format("no node: {}{}{}", fields::Text(condition, "reason"),
                                 message.empty() ? "" : ": ", message));
  }
}

std::string SlotsText(const std::vector<int>& slots) {
  std::string text = slots.size() == 1 ? "slot" : "slots";
  for (size_t i = 0; i < slots.size(); ++i) text += (i ? ", " : " ") + std::to_string(slots[i]);
  return text;
}

void AddSidecar(const SidecarStatus& status, std::vector<std::string>* parts) {
  const bool usual =
      status.state == "Training" || status.state == "Finishing" || status.state == "Finished";
  if (!usual) parts->push_back("its sidecar is " + status.state);
  if (!status.missing_slots.empty())
    parts->push_back(SlotsText(status.missing_slots) + " not in init() yet");
  // The pod's workers wait in a collective, and the training workers continue without them.
  const bool can_join = std::all_of(status.workers.begin(), status.workers.end(),
                                    [](const WorkerStatus& worker) { return worker.takes_state; });
  if (status.state == "Joining" && !can_join)
    parts->push_back(
        "can't join those who train: the script registers no state (elastic.run and a State would "
        "let it in)");
  if (!status.operator_connected) parts->push_back("its sidecar has no operator");
  for (const job::GpuHealth& gpu : status.gpus) {
    if (std::string text = job::Describe(gpu); !text.empty()) parts->push_back(std::move(text));
  }
  for (const BrokenLink& link : status.broken_links) {
    if (!link.kept) continue;  // repaired, or one end is gone and reported so
    parts->push_back(
        fmt::format("the connection to {} broke {} times in the last ten minutes; neither pod is "
                    "left out, because the job would be below minReplicas: all connect anew, ever "
                    "more rarely",
                    link.pod, link.breaks));
  }
}

std::string Phase(const Json& pod, api::Time now) {
  const std::string deleted = fields::TextAt(pod, "/metadata/deletionTimestamp");
  if (!deleted.empty()) {
    // That is when its grace period ends.
    const auto end = api::ParseTime(deleted);
    const std::chrono::seconds grace(
        fields::Integer(fields::At(pod, "/metadata"), "deletionGracePeriodSeconds"));
    return "Terminating" + For(end ? api::FormatTime(*end - grace) : deleted, now);
  }
  const std::string phase = fields::TextAt(pod, "/status/phase");
  if (phase != "Pending") return phase;
  return phase + For(fields::TextAt(pod, "/metadata/creationTimestamp"), now);
}

std::vector<std::string> PartsOf(const Json& pod, const Inspection& found) {
  std::vector<std::string> parts;
  const Json& annotations = fields::At(pod, "/metadata/annotations");
  if (const std::string why = fields::Text(annotations, api::kDrainAnnotation); !why.empty())
    parts.push_back("leaves by plan (" + why + ")");
  if (const std::string why = fields::Text(annotations, api::kHeldAnnotation); !why.empty())
    parts.push_back("stays because " + why);
  AddScheduling(pod, &parts);
  for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"})
    for (const Json& status : fields::ListAt(pod, list)) AddContainer(status, &parts);
  const auto answer = found.answers.find(fields::TextAt(pod, "/metadata/name"));
  if (answer != found.answers.end())
    AddSidecar(answer->second, &parts);
  else if (fields::TextAt(pod, "/status/phase") == "Running" && !found.answers.empty())
    parts.push_back("its sidecar does not answer, though others do");
  return parts;
}

std::string TimeOf(const Json& event) {
  for (const char* at : {"/series/lastObservedTime", "/deprecatedLastTimestamp", "/eventTime",
                         "/metadata/creationTimestamp"})
    if (std::string time = fields::TextAt(event, at); !time.empty()) return time;
  return "";
}

}  // namespace

std::vector<Trouble> TroublesOf(const Json& job) {
  std::vector<Trouble> failed, not_yet, others;
  bool succeeded = false;
  for (const char* type : kWantedTrue) {
    for (const Json& condition : fields::ListAt(job, "/status/conditions"))
      if (fields::Text(condition, "type") == type && fields::Text(condition, "status") == "False")
        not_yet.push_back(TroubleOf(condition));
  }
  for (const Json& condition : fields::ListAt(job, "/status/conditions")) {
    const std::string type = fields::Text(condition, "type");
    if (fields::Text(condition, "status") != "True" || IsWantedTrue(type)) continue;
    if (type == "Succeeded") succeeded = true;
    if (type == "Failed")
      failed.push_back(TroubleOf(condition));
    else
      others.push_back(TroubleOf(condition));
  }
  if (succeeded) return {};
  if (!failed.empty()) return failed;  // the others only repeat that the job has ended
  // NoStepEnds explains other waits, so it comes first.
  std::stable_partition(others.begin(), others.end(),
                        [](const Trouble& trouble) { return trouble.type == "NoStepEnds"; });
  // The same message in two conditions is one problem.
  for (Trouble& trouble : others) {
    const bool told = std::any_of(not_yet.begin(), not_yet.end(), [&](const Trouble& other) {
      return other.message == trouble.message;
    });
    if (!told) not_yet.push_back(std::move(trouble));
  }
  return not_yet;
}

std::string TroubleText(const Trouble& trouble, api::Time now) {
  return fmt::format("{} ({}{}{})", trouble.message, trouble.reason,
                     trouble.since.empty() ? "" : ",", For(trouble.since, now));
}

bool IsWell(const Json& pod, const Inspection& found) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  const bool usual = phase == "Running" || phase == "Succeeded";
  return usual && fields::TextAt(pod, "/metadata/deletionTimestamp").empty() &&
         PartsOf(pod, found).empty();
}

std::vector<std::string> PodTroubles(const Inspection& found, api::Time now) {
  std::vector<std::string> lines;
  for (const Json& pod : found.pods) {
    if (IsWell(pod, found)) continue;
    std::string line = fields::TextAt(pod, "/metadata/name") + "  " + Phase(pod, now);
    for (const std::string& part : PartsOf(pod, found)) line += "; " + part;
    lines.push_back(std::move(line));
  }
  return lines;
}

namespace {

using PodsByVersion = std::map<std::string, std::set<std::string>>;

std::string ListText(const PodsByVersion& pods) {
  std::vector<std::string> parts;
  for (const auto& [version, names] : pods)
    parts.push_back(fmt::format("{} ({})", version.empty() ? "one too old to say" : version,
                                fmt::join(names, ", ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string SidecarVersions(const Inspection& found) {
  PodsByVersion pods;
  for (const auto& [pod, status] : found.answers) pods[status.version].insert(pod);
  if (pods.size() < 2) return "";
  return fmt::format(
      "its pods have sidecars of several versions: {}. What only the newer ones can do lacks where "
      "an older one is asked; pods that are made from now on have the operator's",
      ListText(pods));
}

// A pod's library has the version of its sidecar. A worker with another version has loaded it from
// elsewhere.
std::string LibraryVersions(const Inspection& found) {
  PodsByVersion pods;
  for (const auto& [pod, status] : found.answers) {
    for (const WorkerStatus& worker : status.workers) {
      if (worker.library.empty() || worker.library == status.version) continue;
      pods[fmt::format("{} beside a sidecar of {}", worker.library,
                       status.version.empty() ? "an unknown version" : status.version)]
          .insert(pod);
    }
  }
  if (pods.empty()) return "";
  return fmt::format(
      "workers have libringmaster.so of another version than their sidecar: {}. They train "
      "together; "
      "what only one of the two versions can do lacks there. A worker takes the library that its "
      "pod brings, unless RINGMASTER_LIBRARY names another one or its Python is started without "
      "PYTHONPATH (-I, -E) and finds one that pip has installed",
      ListText(pods));
}

}  // namespace

std::string VersionsText(const Inspection& found) {
  const std::string sidecars = SidecarVersions(found), libraries = LibraryVersions(found);
  return sidecars + (sidecars.empty() || libraries.empty() ? "" : "; ") + libraries;
}

std::string Age(const std::string& since, api::Time now) {
  const auto begun = api::ParseTime(since);
  if (!begun) return "";
  const auto seconds =
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - *begun).count());
  if (seconds < 120) return fmt::format("{}s", seconds);
  if (seconds < 120 * 60) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86400);
}

std::string For(const std::string& since, api::Time now) {
  const std::string age = Age(since, now);
  return age.empty() ? "" : " for " + age;
}

namespace {

// The pod that an event is about: events of the operator regard the job and name the pod as
// related; events of others, such as the kubelet, regard the pod.
std::string PodOf(const Json& event) {
  for (const std::string at : {"/related", "/regarding"}) {
    if (fields::TextAt(event, (at + "/kind").c_str()) == "Pod")
      return "pod " + fields::TextAt(event, (at + "/name").c_str());
  }
  return "";
}

}  // namespace

std::vector<EventLine> EventLines(const std::vector<Json>& events) {
  std::vector<EventLine> lines;
  for (const Json& event : events) {
    const auto count = std::max(fields::IntegerAt(event, "/series/count", 1),
                                fields::Integer(event, "deprecatedCount", 1));
    lines.push_back({TimeOf(event), fields::Text(event, "type") == "Warning",
                     fields::Text(event, "reason"), PodOf(event), static_cast<int>(count),
                     fields::Text(event, "note")});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const EventLine& a, const EventLine& b) { return a.at < b.at; });
  return lines;
}

}  // namespace ringmaster::inspection
