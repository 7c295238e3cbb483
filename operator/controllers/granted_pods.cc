#include "operator/controllers/granted_pods.h"

#include "common/fields/fields.h"
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

// What the API server says about one pod holds for all that are made from the same, so a change of
// the job's size asks nothing anew: a job that makes room for itself would lose what it has.
std::string MadeFrom(const api::HorovodJob& job) {
  return job.spec.pods_digest + ' ' + job.spec.run_policy.scheduling_policy.priority_class;
}

}  // namespace

std::shared_ptr<const Json> AsAsked(std::shared_ptr<const Json> pod) {
  if (fields::ListAt(*pod, "/spec/schedulingGates").empty()) return pod;
  Json light = *pod;
  light["spec"]["containers"] = light["spec"]["initContainers"] = Json::array();
  return std::make_shared<const Json>(std::move(light));
}

GrantedPods::Job& GrantedPods::JobOf(const api::HorovodJob& job) {
  Job& known = jobs_[job.Key()];
  std::string made_from = MadeFrom(job);
  if (known.uid != job.uid || known.made_from != made_from) {
    known = Job();
    known.uid = job.uid;
    known.made_from = std::move(made_from);
  }
  return known;
}

GrantedPods::Pod GrantedPods::Of(const api::HorovodJob& job, const planner::PodCreate& create) {
  const sync::MutexLock lock(&mu_);
  Job& known = JobOf(job);
  Known& pod = known.pods[create.index];
  if (pod.object != nullptr && pod.keep_off == create.keep_off) return pod.object;
  Json made;
  if (known.last.object != nullptr && known.last.keep_off == create.keep_off) {
    made = *known.last.object;
  } else {
    made = Build(job, create, known.tried);
  }
  made["metadata"]["name"] = planner::PodName(job.name, create.index);
  made["metadata"]["labels"].update(LabelsOf(job, create.index));
  pod = {create.keep_off, AsAsked(std::make_shared<const Json>(std::move(made)))};
  known.last = pod;
  return pod.object;
}

bool GrantedPods::TryOut(const api::HorovodJob& job, int index) {
  {
    const sync::MutexLock lock(&mu_);
    Job& known = JobOf(job);
    const Time now = clock_.steady();
    if (now < known.ask_again) return false;
    known.ask_again = now + kSilence;
  }
  Pod tried = dry_run_(job, index);
  if (tried == nullptr) return false;
  const sync::MutexLock lock(&mu_);
  Job& known = JobOf(job);
  known.tried = std::move(tried);
  known.ask_again = clock_.steady() + kCounts;
  known.last = {};
  known.pods.clear();
  return true;
}

GrantedPods::Pod GrantedPods::Tried(const api::HorovodJob& job) const {
  const sync::MutexLock lock(&mu_);
  const auto known = jobs_.find(job.Key());
  if (known == jobs_.end() || known->second.uid != job.uid) return nullptr;
  return known->second.made_from == MadeFrom(job) ? known->second.tried : nullptr;
}

void GrantedPods::Forget(const std::string& job_key) {
  const sync::MutexLock lock(&mu_);
  jobs_.erase(job_key);
}

Json GrantedPods::Build(const api::HorovodJob& job, const planner::PodCreate& create,
                        const Pod& tried) const {
  Json pod = tried == nullptr ? BuildPod(job, create.index, options_) : *tried;
  KeepOffNodes(pod, create.keep_off);
  pod = SlimPod(std::move(pod));
  // Of a dry run: no pod has these.
  for (const char* field : {"uid", "resourceVersion", "creationTimestamp"}) {
    pod["metadata"].erase(field);
  }
  // Each of thousands of jobs that wait has one for each of its pods, and the line reads none of
  // these.
  for (const char* field : {"annotations", "finalizers", "ownerReferences"}) {
    pod["metadata"].erase(field);
  }
  pod.erase("status");
  pod["metadata"]["namespace"] = job.ns;
  RequestWhatIsLimited(pod);
  return pod;
}

}  // namespace ringmaster::controllers
