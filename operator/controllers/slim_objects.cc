#include "operator/controllers/slim_objects.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;
using Fields = std::initializer_list<const char*>;

// Moves these fields of an object into a new one; a value that isn't an object has no fields.
Json Only(Json&& object, const Fields& names) {
  Json kept = Json::object();
  if (!object.is_object()) return kept;
  for (const char* name : names) {
    const auto at = object.find(name);
    if (at != object.end()) kept[name] = std::move(*at);
  }
  return kept;
}

void SlimEach(Json& parent, const char* list, const Fields& names) {
  const auto at = parent.find(list);
  if (at == parent.end() || !at->is_array()) return;
  for (Json& element : *at) element = Only(std::move(element), names);
}

// Whether the scheduler has refused the pod.
void KeepRefusal(const Json& status, Json& slim) {
  for (const Json& condition : fields::List(status, "conditions")) {
    if (fields::Text(condition, "type") != "PodScheduled") continue;
    slim["conditions"] = Json::array({Only(Json(condition), {"type", "status", "reason"})});
  }
}

Json Take(Json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at == object.end() ? Json::object() : std::move(*at);
}

// Ours, those of autoscalers that we write, and no notes of others: a network plugin's may be long.
bool IsReadAnnotation(const std::string& name) {
  constexpr std::array<std::string_view, 4> kRead = {"ringmaster.dev/", "autoscaling.x-k8s.io/",
                                                     "cluster-autoscaler.kubernetes.io/",
                                                     "karpenter.sh/"};
  return std::any_of(kRead.begin(), kRead.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

void SlimOwnMetadata(Json& metadata) {
  SlimEach(metadata, "ownerReferences", {"kind", "name", "uid", "controller"});
  const auto annotations = metadata.find("annotations");
  if (annotations == metadata.end() || !annotations->is_object()) return;
  for (auto at = annotations->begin(); at != annotations->end();) {
    at = IsReadAnnotation(at.key()) ? std::next(at) : annotations->erase(at);
  }
}

// That a pod is ready, or has been, is read from its containers.
void SlimOwnConditions(Json& status) {
  const auto conditions = status.find("conditions");
  if (conditions == status.end() || !conditions->is_array()) return;
  Json kept = Json::array();
  for (Json& condition : *conditions) {
    const std::string type = fields::Text(condition, "type");
    const bool waits = type == "PodScheduled" && fields::Text(condition, "status") != "True";
    if (!waits && type != "DisruptionTarget") continue;
    kept.push_back(Only(std::move(condition), {"type", "status", "reason", "message"}));
  }
  *conditions = std::move(kept);
}

// The image is named only where it can't be had.
void DropImagesThatAreThere(Json& statuses) {
  if (!statuses.is_array()) return;
  for (Json& container : statuses) {
    if (container.is_object() &&
        !fields::Member(fields::Member(container, "state"), "waiting").is_object())
      container.erase("image");
  }
}

}  // namespace

bool IsWorkerPod(const Json& pod) {
  const Json& labels = fields::ObjectAt(pod, "/metadata/labels");
  if (labels.contains(api::kJobUidLabel) &&
      fields::Text(labels, api::kJobRoleLabel) == api::kWorkerRole) {
    return true;
  }
  for (const Json& owner : fields::ListAt(pod, "/metadata/ownerReferences")) {
    if (fields::Flag(owner, "controller") && fields::Text(owner, "kind") == api::kKind) return true;
  }
  return false;
}

Json SlimPod(Json pod) {
  const bool ours = IsWorkerPod(pod);
  Json metadata = Take(pod, "metadata"), spec = Take(pod, "spec"), status = Take(pod, "status");
  Json slim;
  slim["metadata"] = Only(std::move(metadata), {"name", "namespace", "uid", "resourceVersion",
                                                "deletionTimestamp", "deletionGracePeriodSeconds"});
  if (ours) {
    for (const char* name :
         {"labels", "annotations", "ownerReferences", "finalizers", "creationTimestamp"}) {
      if (metadata.contains(name)) slim["metadata"][name] = std::move(metadata[name]);
    }
    SlimOwnMetadata(slim["metadata"]);
  }
  slim["spec"] = Only(std::move(spec),
                      {"nodeName", "schedulingGates", "schedulingGroup", "nodeSelector", "affinity",
                       "tolerations", "resources", "overhead", "priority", "preemptionPolicy",
                       "terminationGracePeriodSeconds", "containers", "initContainers"});
  for (const char* list : {"containers", "initContainers"}) {
    SlimEach(slim["spec"], list, {"name", "restartPolicy", "resources"});
  }
  const bool waits = fields::Text(slim["spec"], "nodeName").empty();
  if (!waits) {
    for (const char* rule : {"nodeSelector", "affinity", "tolerations"}) slim["spec"].erase(rule);
  }
  Json refusal = Json::object();
  if (!ours && waits) KeepRefusal(status, refusal);
  slim["status"] =
      ours ? Only(std::move(status), {"phase", "podIP", "reason", "message", "startTime",
                                      "conditions", "containerStatuses", "initContainerStatuses"})
           : Only(std::move(status), {"phase"});
  slim["status"].update(refusal);
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    SlimEach(slim["status"], list, {"name", "image", "state", "ready", "restartCount"});
    if (slim["status"].contains(list)) DropImagesThatAreThere(slim["status"][list]);
  }
  if (ours) SlimOwnConditions(slim["status"]);
  return slim;
}

kube::Unread UnreadOfPods() {
  static constexpr kube::UnreadField kFields[] = {
      {"spec", "dnsConfig"},
      {"spec", "imagePullSecrets"},
      {"spec", "securityContext"},
      {"spec", "topologySpreadConstraints"},
      {"spec", "volumes"},
      {"status", "hostIPs"},
      {"status", "podIPs"},
      {"containers", "args"},
      {"containers", "command"},
      {"containers", "env"},
      {"containers", "envFrom"},
      {"containers", "image"},
      {"containers", "imagePullPolicy"},
      {"containers", "lifecycle"},
      {"containers", "livenessProbe"},
      {"containers", "ports"},
      {"containers", "readinessProbe"},
      {"containers", "securityContext"},
      {"containers", "startupProbe"},
      {"containers", "terminationMessagePath"},
      {"containers", "terminationMessagePolicy"},
      {"containers", "volumeMounts"},
      {"initContainers", "args"},
      {"initContainers", "command"},
      {"initContainers", "env"},
      {"initContainers", "envFrom"},
      {"initContainers", "image"},
      {"initContainers", "imagePullPolicy"},
      {"initContainers", "lifecycle"},
      {"initContainers", "livenessProbe"},
      {"initContainers", "ports"},
      {"initContainers", "readinessProbe"},
      {"initContainers", "securityContext"},
      {"initContainers", "startupProbe"},
      {"initContainers", "terminationMessagePath"},
      {"initContainers", "terminationMessagePolicy"},
      {"initContainers", "volumeMounts"},
      {"containerStatuses", "allocatedResources"},
      {"containerStatuses", "containerID"},
      {"containerStatuses", "imageID"},
      {"containerStatuses", "lastState"},
      {"containerStatuses", "resources"},
      {"containerStatuses", "user"},
      {"containerStatuses", "volumeMounts"},
      {"initContainerStatuses", "allocatedResources"},
      {"initContainerStatuses", "containerID"},
      {"initContainerStatuses", "imageID"},
      {"initContainerStatuses", "lastState"},
      {"initContainerStatuses", "resources"},
      {"initContainerStatuses", "user"},
      {"initContainerStatuses", "volumeMounts"},
  };
  return kFields;
}

kube::Unread UnreadOfNodes() {
  static constexpr kube::UnreadField kFields[] = {{"status", "images"}};
  return kFields;
}

Json SlimNode(Json node) {
  Json metadata = Take(node, "metadata"), spec = Take(node, "spec"), status = Take(node, "status");
  Json slim;
  slim["metadata"] = Only(std::move(metadata), {"name", "uid", "resourceVersion", "labels"});
  slim["spec"] = Only(std::move(spec), {"unschedulable", "taints"});
  slim["status"] = Only(std::move(status), {"allocatable", "conditions", "nodeInfo"});
  Json& slim_status = slim["status"];
  if (const auto info = slim_status.find("nodeInfo"); info != slim_status.end()) {
    *info = Only(std::move(*info), {"bootID", "machineID", "systemUUID"});
  }
  SlimEach(slim_status, "conditions", {"type", "status"});
  return slim;
}

}  // namespace ringmaster::controllers
