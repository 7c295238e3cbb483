#include "operator/kubelet/lost_pods.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/time.h"
#include "operator/kube/errors.h"
#include "operator/kubelet/log_chunk.h"
#include "operator/kubelet/process.h"

namespace ringmaster::kubelet {
namespace {

using kube::Json;

constexpr int kMostConflicts = 5;
constexpr int kKilled = 137;
// What a kubelet says of a container that it finds no more.
constexpr char kUnseen[] = "ContainerStatusUnknown";
constexpr char kWhy[] = "the node process of its machine has died, and the pod with it";

bool HasEnded(const Json& pod) {
  const std::string phase = fields::TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

Json StatusOf(const Json& statuses, const Json& container) {
  const std::string name = fields::Text(container, "name");
  for (const Json& status : statuses)
    if (fields::Text(status, "name") == name) return status;
  const std::string image = fields::Text(container, "image");
  return {{"name", name},
          {"image", image},
          {"imageID", image},
          {"restartCount", 0},
          {"lastState", Json::object()}};
}

Json Ended(Json status, const std::string& now) {
  status["ready"] = status["started"] = false;
  const Json& state = fields::Member(status, "state");
  if (state.contains("terminated")) return status;
  Json end = {{"exitCode", kKilled}, {"reason", kUnseen}, {"message", kWhy}, {"finishedAt", now}};
  const std::string begun = fields::Text(fields::Member(state, "running"), "startedAt");
  end["startedAt"] = begun.empty() ? now : begun;
  const std::string id = fields::Text(status, "containerID");
  if (!id.empty()) end["containerID"] = id;
  status["state"] = {{"terminated", std::move(end)}};
  return status;
}

Json AllEnded(const Json& containers, const Json& statuses, const std::string& now) {
  Json ended = Json::array();
  for (const Json& container : containers)
    ended.push_back(Ended(StatusOf(statuses, container), now));
  return ended;
}

// What has been sent of a log is all that there is: who reads it waits for no more.
void EndLog(kube::KubeApi* api, const Json& pod, const Json& status) {
  if (fields::Text(status, "containerID").empty()) return;  // it has never begun
  const std::string ns = fields::TextAt(pod, "/metadata/namespace");
  LogChunk last{.ns = ns,
                .pod = fields::TextAt(pod, "/metadata/name"),
                .uid = fields::TextAt(pod, "/metadata/uid"),
                .container = fields::Text(status, "name")};
  const auto got = api->Create(LogChunks(), ns, ToJson(last));
  if (!got || NextOf(*got) == last.at) return;
  last.at = NextOf(*got);
  (void)api->Create(LogChunks(), ns, ToJson(last));
}

// Also one that changes at the same time; one that is gone, or has ended meanwhile, is well.
kube::Result<void> WriteEnd(kube::KubeApi* api, Json pod) {
  const std::string ns = fields::TextAt(pod, "/metadata/namespace");
  const std::string name = fields::TextAt(pod, "/metadata/name");
  const std::string uid = fields::TextAt(pod, "/metadata/uid");
  for (int attempt = 1;; ++attempt) {
    pod["status"] = LostStatus(pod, api::FormatTime(std::chrono::system_clock::now()));
    const auto written = api->Update(kube::Pods(), ns, pod, "status");
    if (written) return {};
    if (written.error().code == kube::ErrorCode::kNotFound) return {};
    if (written.error().code != kube::ErrorCode::kConflict || attempt == kMostConflicts)
      return tl::unexpected(written.error());
    auto live = api->Get(kube::Pods(), ns, name);
    if (!live && live.error().code == kube::ErrorCode::kNotFound) return {};
    if (!live) return tl::unexpected(live.error());
    if (fields::TextAt(*live, "/metadata/uid") != uid || HasEnded(*live)) return {};
    pod = std::move(*live);
  }
}

// A pod that was asked to go has gone.
void Remove(kube::KubeApi* api, const Json& pod) {
  kube::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.uid = fields::TextAt(pod, "/metadata/uid");
  (void)api->Delete(kube::Pods(), fields::TextAt(pod, "/metadata/namespace"),
                    fields::TextAt(pod, "/metadata/name"), options);
}

}  // namespace

Json LostStatus(const Json& pod, const std::string& now) {
  Json status = fields::Member(pod, "status");
  if (!status.is_object()) status = Json::object();
  status["phase"] = "Failed";
  status["message"] = kWhy;
  const Json& inits = fields::ListAt(pod, "/spec/initContainers");
  if (!inits.empty()) {
    status["initContainerStatuses"] =
        AllEnded(inits, fields::ListAt(pod, "/status/initContainerStatuses"), now);
  }
  status["containerStatuses"] = AllEnded(fields::ListAt(pod, "/spec/containers"),
                                         fields::ListAt(pod, "/status/containerStatuses"), now);
  if (!status.contains("conditions")) return status;
  for (Json& condition : status["conditions"]) {
    const std::string type = fields::Text(condition, "type");
    if (type != "Ready" && type != "ContainersReady") continue;
    if (fields::Text(condition, "status") != "False") condition["lastTransitionTime"] = now;
    condition["status"] = "False";
    condition["reason"] = "PodFailed";
  }
  return status;
}

kube::Result<void> EndLostPods(kube::KubeApi* api, const std::string& node) {
  const auto pods = api->ListAll(kube::Pods(), "", {});
  if (!pods) return tl::unexpected(pods.error());
  for (const Json& pod : pods->items) {
    if (fields::TextAt(pod, "/spec/nodeName") != node || HasEnded(pod)) continue;
    const std::string entry = "RINGMASTER_POD=" + fields::TextAt(pod, "/metadata/uid");
    KillAll(0, entry);
    if (!ProcessesWithEntry(entry).empty()) {
      return tl::unexpected(kube::Unavailable(
          "node", "processes of pod " + fields::TextAt(pod, "/metadata/name") + " don't end"));
    }
    for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"})
      for (const Json& status : fields::ListAt(pod, list)) EndLog(api, pod, status);
    if (auto written = WriteEnd(api, pod); !written) return written;
    if (fields::At(pod, "/metadata").contains("deletionTimestamp")) Remove(api, pod);
  }
  return {};
}

}  // namespace ringmaster::kubelet
