#include "operator/controllers/pod_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/plain_text/plain_text.h"
#include "operator/api/labels.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/pod_annotations.h"
#include "operator/planner/disruption.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using planner::PodFacts;
using planner::PodPhase;

PodPhase Phase(const std::string& text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  return PodPhase::kPending;  // also for Unknown: the pod is not known to have ended
}

int ReadIndex(const Json& metadata) {
  const std::string text =
      fields::Text(fields::Member(metadata, "labels"), api::kReplicaIndexLabel);
  int index = -1;
  std::from_chars(text.data(), text.data() + text.size(), index);
  return index;
}

constexpr char kDisruption[] = "DisruptionTarget";  // a condition of Kubernetes

bool IsDeleting(const Json& pod) {
  return !fields::TextAt(pod, "/metadata/deletionTimestamp").empty();
}

// The pod's condition that says it is about to be evicted or preempted; null: it is not.
const Json* DisruptionOf(const Json& pod) {
  for (const Json& condition : fields::ListAt(pod, "/status/conditions")) {
    if (fields::Text(condition, "type") == kDisruption &&
        fields::Text(condition, "status") == "True") {
      return &condition;
    }
  }
  return nullptr;
}

// A pod that is about to be evicted is drained while it lives. Empty: nobody wants it to leave.
std::string DrainReasonOf(const Json& pod) {
  const std::string asked =
      fields::Text(fields::At(pod, "/metadata/annotations"), api::kDrainAnnotation);
  // A kubelet that ends a pod (no room on the node's disk, a shutdown) writes the condition
  // together with the pod's failure: that is what has happened, and nobody asks the pod to leave.
  const bool asks = asked.empty() && fields::TextAt(pod, "/status/phase") != "Failed";
  const Json* const disruption = asks ? DisruptionOf(pod) : nullptr;
  if (disruption == nullptr) return asked;
  const std::string reason = fields::Text(*disruption, "reason");
  return reason.empty() ? kDisruption : reason;
}

void ReadMetadata(const Json& metadata, PodFacts* facts) {
  const Json& annotations = fields::Member(metadata, "annotations");
  facts->name = fields::Text(metadata, "name");
  facts->uid = fields::Text(metadata, "uid");
  facts->version = fields::Text(metadata, "resourceVersion");
  facts->index = ReadIndex(metadata);
  facts->delete_at = api::ParseTime(fields::Text(metadata, "deletionTimestamp"));
  facts->created =
      api::ParseTime(fields::Text(metadata, "creationTimestamp")).value_or(planner::Time());
  facts->drain_since = api::ParseTime(fields::Text(annotations, api::kDrainSinceAnnotation));
  facts->made_from = fields::Text(annotations, api::kMadeFromAnnotation);
  facts->made_at = std::atoll(fields::Text(annotations, api::kMadeAtAnnotation).c_str());
  facts->topology = fields::Text(annotations, api::kTopologyAnnotation);
  facts->calls_for_nodes = !fields::Text(annotations, api::kCallsForNodesAnnotation).empty();
  facts->consumes = fields::Text(annotations, provisioning::kConsumeAnnotation);
  facts->shields = ReadShields(annotations);
  facts->http = fields::Text(annotations, api::kHttpAnnotation);
  facts->boot = fields::Text(annotations, api::kBootAnnotation);
  facts->vouched = fields::Text(annotations, api::kProvenAnnotation);
  facts->held_why = fields::Text(annotations, api::kHeldAnnotation);
  facts->warned = fields::Text(annotations, api::kWarnedAnnotation);
  facts->warned_since = api::ParseTime(fields::Text(annotations, api::kWarnedSinceAnnotation));
  facts->announced = ReadAnnounced(fields::Text(annotations, api::kAnnouncedAnnotation));
}

void ReadWhyUnscheduled(const Json& status, PodFacts* facts) {
  for (const Json& condition : fields::Member(status, "conditions")) {
    const std::string reason = fields::Text(condition, "reason");
    const bool scheduled = fields::Text(condition, "status") == "True";
    if (fields::Text(condition, "type") != "PodScheduled" || scheduled || reason.empty()) continue;
    // Gates are read from the spec, because the scheduler may not have noticed yet that one was
    // removed.
    if (reason == "SchedulingGated") continue;
    facts->waiting = reason + ": " + fields::Text(condition, "message");
  }
}

// The text becomes part of a sentence: the status is no place for a log.
constexpr std::size_t kMaxWords = 200;

std::string ToWords(std::string_view line) {
  return plain_text::CutWithDots(plain_text::WithoutControls(std::string(line)), kMaxWords);
}

// The line is the launcher's report about its own actions, which says nothing about why the script
// ended.
bool IsLaunchersAccount(std::string_view line) {
  constexpr std::string_view kAccount = "ringmaster-launcher: ", kError = "error: ";
  if (line.rfind(kAccount, 0) != 0) return false;
  return line.substr(kAccount.size()).rfind(kError, 0) != 0;
}

// The last meaningful line at the end of the log that the kubelet has kept.
std::string LastWords(std::string_view log) {
  constexpr std::string_view kBlanks = " \t\r\n";
  for (;;) {
    const std::size_t last = log.find_last_not_of(kBlanks);
    if (last == std::string_view::npos) return "";
    log = log.substr(0, last + 1);
    const std::size_t begin = log.find_last_of("\r\n");  // npos + 1 is 0
    const std::string_view line = log.substr(begin + 1);
    if (!IsLaunchersAccount(line)) return ToWords(line.substr(line.find_first_not_of(kBlanks)));
    log = log.substr(0, begin + 1);
  }
}

// How the container ended was not observed (its node lost power, or the kubelet has no record), so
// the exit code is made up.
bool IsUnseen(const Json& terminated) {
  const std::string reason = fields::Text(terminated, "reason");
  return reason == "Unknown" || reason == "ContainerStatusUnknown";
}

void ReadWorkerState(const Json& container, PodFacts* facts) {
  const Json& state = fields::Member(container, "state");
  const Json& terminated = fields::Member(state, "terminated");
  if (terminated.is_object()) {
    const Json& code = fields::Member(terminated, "exitCode");
    const std::string reason = fields::Text(terminated, "reason");
    const bool unseen = IsUnseen(terminated);
    if (code.is_number_integer() && !unseen) facts->exit_code = code.get<int>();
    facts->last_words = LastWords(fields::Text(terminated, "message"));
    facts->ended_at = api::ParseTime(fields::Text(terminated, "finishedAt"));
    if (reason == "OOMKilled") facts->reason = reason;
    if (unseen) facts->reason = "NodeLost";
  }
  const Json& running = fields::Member(state, "running");
  if (running.is_object())
    facts->running_since = api::ParseTime(fields::Text(running, "startedAt"));
}

template <std::size_t n>
bool IsOneOf(std::string_view word, const std::array<std::string_view, n>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// Between two attempts the kubelet reports the back-off, followed by the message of the last
// attempt.
std::string WithoutBackOff(const std::string& message) {
  for (const char* tried : {": ErrImagePull: ", ": RegistryUnavailable: "}) {
    const std::size_t at = message.find(tried);
    if (message.rfind("Back-off", 0) == 0 && at != std::string::npos) {
      return message.substr(at + std::string_view(tried).size());
    }
  }
  return message;
}

void ReadWaiting(const Json& container, PodFacts* facts) {
  // Every pod passes through ContainerCreating and PodInitializing.
  constexpr std::array<std::string_view, 3> kUsual = {"", "ContainerCreating", "PodInitializing"};
  constexpr std::array<std::string_view, 7> kImage = {
      "ErrImagePull",      "ImagePullBackOff",    "InvalidImageName",         "ErrImageNeverPull",
      "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"};
  const Json& waiting = fields::Member(fields::Member(container, "state"), "waiting");
  const std::string reason = fields::Text(waiting, "reason");
  if (facts->unstartable || IsOneOf(reason, kUsual)) return;
  const std::string name = fields::Text(container, "name");
  std::string message = WithoutBackOff(fields::Text(waiting, "message"));
  if (IsOneOf(reason, kImage)) {
    facts->unstartable = {"ImagePullFailed",
                          fmt::format("image {} of container {} can't be had",
                                      fields::Text(container, "image"), name),
                          std::move(message)};
  } else if (reason == "CrashLoopBackOff") {
    facts->unstartable = {"ContainerCrashes",
                          fmt::format("container {} ends again and again", name),
                          std::move(message)};
  } else {
    facts->unstartable = {"ContainerNotStarted",
                          fmt::format("container {} can't be started: {}", name, reason),
                          std::move(message)};
  }
}

bool AnyHasBegun(const Json& status) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : fields::Member(status, list)) {
      const Json& state = fields::Member(container, "state");
      if (fields::Member(state, "running").is_object() ||
          fields::Member(state, "terminated").is_object())
        return true;
    }
  }
  return false;
}

// Finds an init container that failed for good: those that are restarted are sidecars, and end with
// the pod.
void ReadFailedInit(const Json& spec, const Json& status, PodFacts* facts) {
  std::set<std::string> sidecars;
  for (const Json& container : fields::Member(spec, "initContainers")) {
    if (fields::Text(container, "restartPolicy") == "Always")
      sidecars.insert(fields::Text(container, "name"));
  }
  for (const Json& container : fields::Member(status, "initContainerStatuses")) {
    const std::string name = fields::Text(container, "name");
    const Json& terminated = fields::Member(fields::Member(container, "state"), "terminated");
    const Json& code = fields::Member(terminated, "exitCode");
    if (sidecars.count(name) != 0 || !code.is_number_integer() || code == 0) continue;
    if (IsUnseen(terminated)) continue;
    facts->failed_init = {name, code.get<int>()};
    facts->last_words = LastWords(fields::Text(terminated, "message"));
  }
}

// A container other than the worker, and no sidecar, is in a state for which `fits` is true.
bool AnyBeside(const Json& status, bool (*fits)(const Json& terminated)) {
  const Json& containers = fields::Member(status, "containerStatuses");
  return std::any_of(containers.begin(), containers.end(), [&](const Json& container) {
    return fields::Text(container, "name") != api::kWorkerContainer &&
           fits(fields::Member(fields::Member(container, "state"), "terminated"));
  });
}

// The worker's exit decides the pod's phase: it is never restarted in its pod, so other containers
// need not run on, and their exit codes don't count.
void FollowTheWorker(const Json& status, PodFacts* facts) {
  facts->lingers = facts->exit_code && AnyBeside(status, [](const Json& terminated) {
                     return !terminated.is_object();
                   });
  const bool fault_beside = AnyBeside(status, [](const Json& terminated) {
    return terminated.is_object() && fields::Member(terminated, "exitCode") != 0;
  });
  const PodPhase phase = facts->exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  // When all containers have ended, the kubelet sets the phase a moment later.
  const bool behind =
      facts->phase == PodPhase::kRunning && (facts->lingers || facts->all_terminated);
  const bool wronged = facts->phase == PodPhase::kFailed && facts->reason.empty() && fault_beside;
  if (behind || wronged) facts->phase = phase;
}

// Gates of other owners keep the pod off all nodes.
void ReadGates(const Json& spec, PodFacts* facts) {
  facts->grouped = spec.contains("schedulingGroup");
  std::string others;
  for (const Json& gate : fields::Member(spec, "schedulingGates")) {
    const std::string name = fields::Text(gate, "name");
    if (name == api::kGangGate) {
      facts->gated = true;
    } else {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty()) facts->waiting = "not ours to lift: scheduling gate " + others;
}

// The kubelet has reported every container of the pod as terminated. Containers after a failed init
// container never start, so they don't count.
bool AllTerminated(const Json& spec, const Json& status, const PodFacts& facts) {
  std::set<std::string> terminated;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : fields::Member(status, list)) {
      if (!fields::Member(fields::Member(container, "state"), "terminated").is_object()) continue;
      terminated.insert(fields::Text(container, "name"));
    }
  }
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : fields::Member(spec, list)) {
      const std::string name = fields::Text(container, "name");
      if (terminated.count(name) == 0) return false;
      if (facts.failed_init && facts.failed_init->name == name) return true;
    }
  }
  return !terminated.empty();
}

}  // namespace

// Anyone who may write pods can write this annotation, so its content is checked.
std::map<std::string, std::string> ReadAnnounced(const std::string& text) {
  std::map<std::string, std::string> announced;
  const Json json = fields::ParseOrDiscard(text);
  if (!json.is_object()) return announced;
  for (const auto& [node, reason] : json.items()) {
    if (reason.is_string()) announced[node] = reason.get<std::string>();
  }
  return announced;
}

PodFacts ReadPod(const Json& pod) {
  PodFacts facts;
  ReadMetadata(fields::Member(pod, "metadata"), &facts);
  facts.deleting = IsDeleting(pod);
  facts.drain_reason = DrainReasonOf(pod);
  const Json& spec = fields::Member(pod, "spec");
  const Json& status = fields::Member(pod, "status");
  ReadGates(spec, &facts);
  facts.node = fields::Text(spec, "nodeName");
  facts.scheduled = !facts.node.empty();
  facts.accepted = !fields::Text(status, "startTime").empty();
  facts.accepted_at = api::ParseTime(fields::Text(status, "startTime"));
  facts.has_finalizer = HasFinalizer(pod);
  const Json& grace = fields::Member(spec, "terminationGracePeriodSeconds");
  if (grace.is_number_integer()) facts.grace_seconds = grace.get<int>();
  facts.phase = Phase(fields::Text(status, "phase"));
  ReadWhyUnscheduled(status, &facts);
  if (const Json* disruption = DisruptionOf(pod)) {
    facts.reason = fields::Text(*disruption, "reason");
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : fields::Member(status, list)) ReadWaiting(container, &facts);
  }
  facts.preparing = facts.accepted && !facts.unstartable && !AnyHasBegun(status);
  for (const Json& container : fields::Member(status, "containerStatuses")) {
    if (fields::Text(container, "name") == api::kWorkerContainer)
      ReadWorkerState(container, &facts);
  }
  if (facts.phase == PodPhase::kFailed) {
    const std::string reason = fields::Text(status, "reason");  // Evicted, NodeLost, ...
    if (!reason.empty()) facts.reason = reason;
    facts.rejected = !reason.empty() && !AnyHasBegun(status);
    ReadFailedInit(spec, status, &facts);
  }
  facts.all_terminated = AllTerminated(spec, status, facts);
  FollowTheWorker(status, &facts);
  Prove(&facts, {});
  return facts;
}

bool IsLeaving(const Json& pod) { return IsDeleting(pod) || !DrainReasonOf(pod).empty(); }

void Prove(PodFacts* facts, const planner::NodeEvidence& evidence) {
  const auto proof = planner::ProofOfDeath(*facts, evidence);
  facts->proven_dead = proof.has_value();
  facts->proof = proof.value_or("");
  // The pod ended with its node: none of its containers has failed.
  if (facts->proven_dead && !facts->all_terminated && facts->reason.empty()) {
    facts->reason = "NodeLost";
  }
}

}  // namespace ringmaster::controllers
