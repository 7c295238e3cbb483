// Reads a pod as the API server gives it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/controllers/lenient_json.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_marks.h"
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
  return PodPhase::kPending;  // and Unknown: nothing is known to have ended
}

int ReadIndex(const Json& metadata) {
  const std::string text = Text(At(metadata, "labels"), planner::kReplicaIndexLabel);
  int index = -1;
  std::from_chars(text.data(), text.data() + text.size(), index);
  return index;
}

// Written by us, and by anybody who may write pods.
std::map<std::string, std::string> ReadAnnounced(const std::string& text) {
  std::map<std::string, std::string> announced;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return announced;
  for (const auto& [node, reason] : json.items()) {
    if (reason.is_string()) announced[node] = reason.get<std::string>();
  }
  return announced;
}

void ReadMetadata(const Json& metadata, PodFacts* facts) {
  const Json& annotations = At(metadata, "annotations");
  facts->name = Text(metadata, "name");
  facts->uid = Text(metadata, "uid");
  facts->index = ReadIndex(metadata);
  facts->deleting = !Text(metadata, "deletionTimestamp").empty();
  facts->delete_at = api::ParseTime(Text(metadata, "deletionTimestamp"));
  facts->created = api::ParseTime(Text(metadata, "creationTimestamp")).value_or(planner::Time());
  facts->drain_reason = Text(annotations, planner::kDrainAnnotation);
  facts->drain_since = api::ParseTime(Text(annotations, planner::kDrainSinceAnnotation));
  facts->http = Text(annotations, planner::kHttpAnnotation);
  facts->boot = Text(annotations, planner::kBootAnnotation);
  facts->vouched = Text(annotations, planner::kProvenAnnotation);
  facts->held_why = Text(annotations, planner::kHeldAnnotation);
  facts->warned = Text(annotations, planner::kWarnedAnnotation);
  facts->warned_since = api::ParseTime(Text(annotations, planner::kWarnedSinceAnnotation));
  facts->announced = ReadAnnounced(Text(annotations, planner::kAnnouncedAnnotation));
}

void ReadConditions(const Json& status, PodFacts* facts) {
  for (const Json& condition : At(status, "conditions")) {
    const std::string type = Text(condition, "type");
    const bool on = Text(condition, "status") == "True";
    // A gate is looked for in the spec: the scheduler may not have seen yet that it is gone.
    const bool gate = Text(condition, "reason") == "SchedulingGated";
    if (type == "PodScheduled" && !on && !gate && !Text(condition, "reason").empty()) {
      facts->waiting = Text(condition, "reason") + ": " + Text(condition, "message");
    }
    // The pod is about to be evicted or preempted: it leaves by plan as long as it lives.
    if (type == "DisruptionTarget" && on) {
      facts->reason = Text(condition, "reason");
      if (facts->drain_reason.empty()) facts->drain_reason = facts->reason;
    }
  }
}

void ReadWorkerState(const Json& container, PodFacts* facts) {
  const Json& state = At(container, "state");
  const Json& terminated = At(state, "terminated");
  if (terminated.is_object()) {
    const Json& code = At(terminated, "exitCode");
    const std::string reason = Text(terminated, "reason");
    // Nobody saw how it ended: its node lost power, or the kubelet has lost it. The code is made
    // up.
    const bool unseen = reason == "Unknown" || reason == "ContainerStatusUnknown";
    if (code.is_number_integer() && !unseen) facts->exit_code = code.get<int>();
    facts->ended_at = api::ParseTime(Text(terminated, "finishedAt"));
    if (reason == "OOMKilled") facts->reason = reason;
    if (unseen) facts->reason = "NodeLost";
  }
  const Json& running = At(state, "running");
  if (running.is_object()) facts->running_since = api::ParseTime(Text(running, "startedAt"));
}

template <std::size_t n>
bool IsOneOf(std::string_view word, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Between two tries the kubelet shows how it waits, and quotes the try behind that.
std::string WithoutBackOff(const std::string& words) {
  for (const char* tried : {": ErrImagePull: ", ": RegistryUnavailable: "}) {
    const std::size_t at = words.find(tried);
    if (words.rfind("Back-off", 0) == 0 && at != std::string::npos) {
      return words.substr(at + std::string_view(tried).size());
    }
  }
  return words;
}

void ReadWaiting(const Json& container, PodFacts* facts) {
  // Every pod passes through the first two.
  constexpr std::array<std::string_view, 3> kUsual = {"", "ContainerCreating", "PodInitializing"};
  constexpr std::array<std::string_view, 7> kImage = {
      "ErrImagePull",      "ImagePullBackOff",    "InvalidImageName",         "ErrImageNeverPull",
      "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"};
  const Json& waiting = At(At(container, "state"), "waiting");
  const std::string reason = Text(waiting, "reason");
  if (facts->unstartable || IsOneOf(reason, kUsual)) return;
  const std::string name = Text(container, "name");
  std::string words = WithoutBackOff(Text(waiting, "message"));
  if (IsOneOf(reason, kImage)) {
    facts->unstartable = {
        "ImagePullFailed",
        fmt::format("image {} of container {} can't be had", Text(container, "image"), name),
        std::move(words)};
  } else if (reason == "CrashLoopBackOff") {
    facts->unstartable = {"ContainerCrashes",
                          fmt::format("container {} ends again and again", name), std::move(words)};
  } else {
    facts->unstartable = {"ContainerNotStarted",
                          fmt::format("container {} can't be started: {}", name, reason),
                          std::move(words)};
  }
}

bool AnyHasBegun(const Json& status) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : At(status, list)) {
      const Json& state = At(container, "state");
      if (At(state, "running").is_object() || At(state, "terminated").is_object()) return true;
    }
  }
  return false;
}

// Gates of others than us keep the pod from every node.
void ReadGates(const Json& spec, PodFacts* facts) {
  std::string others;
  for (const Json& gate : At(spec, "schedulingGates")) {
    const std::string name = Text(gate, "name");
    if (name == planner::kGangGate) {
      facts->gated = true;
    } else {
      others += (others.empty() ? "" : ", ") + name;
    }
  }
  if (!others.empty()) facts->waiting = "not ours to lift: scheduling gate " + others;
}

// Every container that the pod has is terminated, as the kubelet wrote it.
bool AllTerminated(const Json& spec, const Json& status) {
  std::size_t terminated = 0, wanted = 0;
  for (const char* list : {"containers", "initContainers"}) wanted += At(spec, list).size();
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : At(status, list)) {
      terminated += At(At(container, "state"), "terminated").is_object() ? 1 : 0;
    }
  }
  return wanted > 0 && terminated >= wanted;
}

}  // namespace

PodFacts ReadPod(const Json& pod) {
  PodFacts facts;
  ReadMetadata(At(pod, "metadata"), &facts);
  const Json& spec = At(pod, "spec");
  const Json& status = At(pod, "status");
  ReadGates(spec, &facts);
  facts.node = Text(spec, "nodeName");
  facts.scheduled = !facts.node.empty();
  facts.accepted = !Text(status, "startTime").empty();
  facts.held = HasFinalizer(pod);
  const Json& grace = At(spec, "terminationGracePeriodSeconds");
  if (grace.is_number_integer()) facts.grace_seconds = grace.get<int>();
  facts.phase = Phase(Text(status, "phase"));
  ReadConditions(status, &facts);
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& container : At(status, list)) ReadWaiting(container, &facts);
  }
  facts.preparing = facts.accepted && !facts.unstartable && !AnyHasBegun(status);
  for (const Json& container : At(status, "containerStatuses")) {
    if (Text(container, "name") == api::kWorkerContainer) ReadWorkerState(container, &facts);
  }
  if (facts.phase == PodPhase::kFailed && !Text(status, "reason").empty()) {
    facts.reason = Text(status, "reason");  // Evicted, NodeLost, ...
  }
  facts.all_terminated = AllTerminated(spec, status);
  if (facts.all_terminated && facts.phase == PodPhase::kRunning) {
    // The phase comes a moment later.
    facts.phase = facts.exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  }
  Prove(&facts, {});
  return facts;
}

void Prove(PodFacts* facts, const planner::NodeEvidence& evidence) {
  const auto proof = planner::ProofOfDeath(*facts, evidence);
  facts->proven_dead = proof.has_value();
  facts->proof = proof.value_or("");
  // It ended with its node: nothing in it has failed.
  if (facts->proven_dead && !facts->all_terminated && facts->reason.empty()) {
    facts->reason = "NodeLost";
  }
}

}  // namespace ringmaster::controllers
