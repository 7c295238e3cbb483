#include "operator/controllers/granted_pods.h"

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/slim_objects.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

// Sets missing requests to the limits, as the API server does for pods that are written.
void RequestWhatIsLimited(Json& pod) {
  for (const char* list : {"containers", "initContainers"}) {
    const auto containers = pod["spec"].find(list);
    if (containers == pod["spec"].end()) continue;
    for (Json& container : *containers) {
      const Json limits = fields::ObjectAt(container, "/resources/limits");
      for (const auto& [resource, amount] : limits.items()) {
        Json& requests = container["resources"]["requests"];
        if (!requests.contains(resource)) requests[resource] = amount;
      }
    }
  }
}

}  // namespace

std::shared_ptr<const Json> AsAsked(std::shared_ptr<const Json> pod) {
  const Json& gates = fields::ListAt(*pod, "/spec/schedulingGates");
  const bool others = std::any_of(gates.begin(), gates.end(), [](const Json& gate) {
    return fields::Text(gate, "name") != api::kGangGate;
  });
  if (!others) return pod;
  Json light = *pod;
  light["spec"]["containers"] = light["spec"]["initContainers"] = Json::array();
  return std::make_shared<const Json>(std::move(light));
}

std::shared_ptr<const Json> GrantedPods::Of(const api::HorovodJob& job,
                                            const planner::PodCreate& create) {
  const sync::MutexLock lock(&mu_);
  Job& known = jobs_[job.Key()];
  if (known.uid != job.uid || known.generation != job.generation) {
    known = {.uid = job.uid, .generation = job.generation, .last = {}, .pods = {}};
  }
  Pod& pod = known.pods[create.index];
  if (pod.object != nullptr && pod.keep_off == create.keep_off) return pod.object;
  Json made;
  if (known.last.object != nullptr && known.last.keep_off == create.keep_off) {
    made = *known.last.object;
    made["metadata"]["name"] = planner::PodName(job.name, create.index);
    made["metadata"]["labels"].update(LabelsOf(job, create.index));
  } else {
    made = Build(job, create);
  }
  pod = {create.keep_off, AsAsked(std::make_shared<const Json>(std::move(made)))};
  known.last = pod;
  return pod.object;
}

void GrantedPods::Forget(const std::string& job_key) {
  const sync::MutexLock lock(&mu_);
  jobs_.erase(job_key);
}

Json GrantedPods::Build(const api::HorovodJob& job, const planner::PodCreate& create) const {
  Json pod = BuildPod(job, create.index, options_);
  KeepOffNodes(pod, create.keep_off);
  pod = SlimPod(std::move(pod));
  pod["metadata"]["namespace"] = job.ns;
  RequestWhatIsLimited(pod);
  return pod;
}

}  // namespace ringmaster::controllers
