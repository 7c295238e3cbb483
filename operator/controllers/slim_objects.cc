#include "operator/controllers/slim_objects.h"

#include <initializer_list>
#include <nlohmann/json.hpp>
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

void DropNotes(Json& metadata) {
  const auto annotations = metadata.find("annotations");
  if (annotations == metadata.end() || !annotations->is_object()) return;
  annotations->erase("kubectl.kubernetes.io/last-applied-configuration");
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
    DropNotes(slim["metadata"]);
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
  }
  return slim;
}

fields::Unread UnreadOfPods() {
  static constexpr fields::UnreadField kFields[] = {
      {"spec", "volumes"},
      {"spec", "securityContext"},
      {"containers", "args"},
      {"containers", "command"},
      {"containers", "env"},
      {"containers", "envFrom"},
      {"containers", "image"},
      {"containers", "lifecycle"},
      {"containers", "livenessProbe"},
      {"containers", "ports"},
      {"containers", "readinessProbe"},
      {"containers", "securityContext"},
      {"containers", "startupProbe"},
      {"containers", "volumeMounts"},
      {"initContainers", "args"},
      {"initContainers", "command"},
      {"initContainers", "env"},
      {"initContainers", "envFrom"},
      {"initContainers", "image"},
      {"initContainers", "lifecycle"},
      {"initContainers", "livenessProbe"},
      {"initContainers", "ports"},
      {"initContainers", "readinessProbe"},
      {"initContainers", "securityContext"},
      {"initContainers", "startupProbe"},
      {"initContainers", "volumeMounts"},
      {"containerStatuses", "lastState"},
      {"containerStatuses", "volumeMounts"},
      {"initContainerStatuses", "lastState"},
      {"initContainerStatuses", "volumeMounts"},
  };
  return kFields;
}

fields::Unread UnreadOfNodes() {
  static constexpr fields::UnreadField kFields[] = {{"status", "images"}};
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
