#include "operator/kubelet/pod_status.h"

#include <algorithm>

namespace ringmaster::kubelet {
namespace {

using Phase = ContainerState::Phase;

bool Initialized(const PodView& pod) {
  return std::all_of(pod.containers.begin(), pod.containers.end(), [](const ContainerState& c) {
    if (c.kind == ContainerKind::kInit) return c.done && c.exit_code == 0;
    // Once started, a sidecar that restarts or has ended doesn't undo it.
    return c.kind == ContainerKind::kMain || c.started || c.restarts > 0 || c.done;
  });
}

bool AllStopped(const PodView& pod) {
  return std::none_of(pod.containers.begin(), pod.containers.end(),
                      [](const ContainerState& c) { return c.phase == Phase::kRunning; });
}

Json StateJson(const ContainerState& c) {
  if (c.phase == Phase::kWaiting) {
    Json waiting = {{"reason", c.reason.empty() ? "ContainerCreating" : c.reason}};
    if (!c.message.empty()) waiting["message"] = c.message;
    return {{"waiting", waiting}};
  }
  if (c.phase == Phase::kRunning) return {{"running", {{"startedAt", c.started_at}}}};
  Json terminated = {{"exitCode", c.exit_code},
                     {"reason", c.reason},
                     {"startedAt", c.started_at},
                     {"finishedAt", c.finished_at},
                     {"containerID", c.id}};
  if (!c.message.empty()) terminated["message"] = c.message;
  return {{"terminated", terminated}};
}

Json ContainerJson(const ContainerState& c) {
  Json json = {{"name", c.name},        {"image", c.image},
               {"imageID", c.image},    {"restartCount", c.restarts},
               {"ready", c.ready},      {"started", c.started},
               {"state", StateJson(c)}, {"lastState", c.last_state}};
  if (!c.id.empty()) json["containerID"] = c.id;
  return json;
}

void SetCondition(Json& conditions, const std::string& type, bool holds, const std::string& reason,
                  const std::string& message, const std::string& now) {
  Json condition = {{"type", type}, {"status", holds ? "True" : "False"}};
  if (!holds && !reason.empty()) condition["reason"] = reason;
  if (!holds && !message.empty()) condition["message"] = message;
  for (Json& old : conditions) {
    if (old.value("type", "") != type) continue;
    bool same = old.value("status", "") == condition["status"];
    condition["lastTransitionTime"] = same ? old.value("lastTransitionTime", now) : now;
    old = std::move(condition);
    return;
  }
  condition["lastTransitionTime"] = now;
  conditions.push_back(std::move(condition));
}

// "containers with unready status: [a b]"
std::string Unready(const PodView& pod, bool init) {
  std::string names;
  for (const ContainerState& c : pod.containers) {
    bool counts = init ? c.kind == ContainerKind::kInit : c.kind != ContainerKind::kInit;
    if (counts && !c.ready) names += (names.empty() ? "" : " ") + c.name;
  }
  if (names.empty()) return "";
  return std::string("containers with ") + (init ? "incomplete" : "unready") + " status: [" +
         names + "]";
}

}  // namespace

std::string PhaseOf(const PodView& pod) {
  if (pod.failed) return AllStopped(pod) ? "Failed" : "Running";
  bool all_succeeded = true, all_done = true, any_started = false;
  for (const ContainerState& c : pod.containers) {
    if (c.kind != ContainerKind::kMain) continue;
    all_done &= c.phase == Phase::kTerminated && (c.done || pod.terminating);
    all_succeeded &= c.phase == Phase::kTerminated && c.exit_code == 0;
    any_started |= c.phase != Phase::kWaiting || !c.last_state.empty();
  }
  if (pod.terminating && AllStopped(pod)) return all_succeeded ? "Succeeded" : "Failed";
  if (!Initialized(pod)) return any_started ? "Running" : "Pending";
  // A sidecar that still runs keeps the pod running, whatever its containers have reached.
  if (all_done && AllStopped(pod)) return all_succeeded ? "Succeeded" : "Failed";
  return any_started ? "Running" : "Pending";
}

Json MakeStatus(const PodView& pod, Json live, const std::string& address, const std::string& now) {
  if (!live.is_object()) live = Json::object();
  std::string phase = PhaseOf(pod);
  bool finished = phase == "Succeeded" || phase == "Failed";
  live["phase"] = phase;
  if (!pod.reason.empty()) live["reason"] = pod.reason;
  if (!pod.message.empty()) live["message"] = pod.message;
  live["hostIP"] = live["podIP"] = address;
  live["podIPs"] = live["hostIPs"] = Json::array({{{"ip", address}}});
  if (!live.contains("startTime")) live["startTime"] = now;
  live["initContainerStatuses"] = Json::array();
  live["containerStatuses"] = Json::array();
  for (const ContainerState& c : pod.containers) {
    bool main = c.kind == ContainerKind::kMain;
    live[main ? "containerStatuses" : "initContainerStatuses"].push_back(ContainerJson(c));
  }
  if (live["initContainerStatuses"].empty()) live.erase("initContainerStatuses");

  if (!live.contains("conditions") || !live["conditions"].is_array())
    live["conditions"] = Json::array();
  Json& conditions = live["conditions"];
  bool initialized = Initialized(pod) || phase == "Succeeded";
  std::string unready = Unready(pod, false);
  bool ready = unready.empty() && initialized && !finished;
  std::string reason = phase == "Succeeded" ? "PodCompleted"
                       : phase == "Failed"  ? "PodFailed"
                                            : "ContainersNotReady";
  SetCondition(conditions, "Initialized", initialized, "ContainersNotInitialized",
               Unready(pod, true), now);
  SetCondition(conditions, "Ready", ready, reason, unready, now);
  SetCondition(conditions, "ContainersReady", ready, reason, unready, now);
  SetCondition(conditions, "PodScheduled", true, "", "", now);
  return live;
}

}  // namespace ringmaster::kubelet
