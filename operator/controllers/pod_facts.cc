// Reads a pod as the API server gives it.
#include <charconv>
#include <nlohmann/json.hpp>

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
}

void ReadConditions(const Json& status, PodFacts* facts) {
  for (const Json& condition : At(status, "conditions")) {
    const std::string type = Text(condition, "type");
    const bool on = Text(condition, "status") == "True";
    if (type == "PodScheduled" && !on && !Text(condition, "reason").empty()) {
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
  const std::string waiting = Text(At(state, "waiting"), "reason");
  // The two that every pod passes through say nothing.
  if (!waiting.empty() && waiting != "ContainerCreating" && waiting != "PodInitializing") {
    facts->waiting = waiting + ": " + Text(At(state, "waiting"), "message");
  }
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
  for (const Json& gate : At(spec, "schedulingGates")) {
    facts.gated = facts.gated || Text(gate, "name") == planner::kGangGate;
  }
  facts.node = Text(spec, "nodeName");
  facts.scheduled = !facts.node.empty();
  facts.accepted = !Text(status, "startTime").empty();
  facts.held = HasFinalizer(pod);
  const Json& grace = At(spec, "terminationGracePeriodSeconds");
  if (grace.is_number_integer()) facts.grace_seconds = grace.get<int>();
  facts.phase = Phase(Text(status, "phase"));
  ReadConditions(status, &facts);
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
