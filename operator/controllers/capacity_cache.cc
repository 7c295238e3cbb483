#include "operator/controllers/capacity_cache.h"

#include "operator/kube/resources.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

// What placement looks at: thousands of pods are kept.
Json Slim(const Json& object) {
  Json slim = {{"metadata", Json::object()}};
  for (const char* path :
       {"/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/resourceVersion",
        "/metadata/deletionTimestamp", "/metadata/labels", "/spec/nodeName",
        "/spec/schedulingGates", "/spec/nodeSelector", "/spec/affinity/nodeAffinity",
        "/spec/tolerations", "/spec/resources", "/spec/overhead", "/spec/unschedulable",
        "/spec/taints", "/status/phase", "/status/allocatable"}) {
    const Json::json_pointer pointer(path);
    if (object.contains(pointer)) slim[pointer] = object.at(pointer);
  }
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : object.value("spec", Json::object()).value(list, Json::array())) {
      slim["spec"][list].push_back({{"restartPolicy", container.value("restartPolicy", "")},
                                    {"resources", container.value("resources", Json::object())}});
    }
  }
  return slim;
}

}  // namespace

CapacityCache::CapacityCache(std::shared_ptr<kube::KubeApi> api)
    : nodes_(api, kube::Nodes(), {.keep = Slim},
             [this](const Json& node, bool deleted) {
               const sync::MutexLock lock(&mu_);
               if (deleted) {
                 capacity_.RemoveNode(runtime::MetaField(node, "name"));
               } else {
                 capacity_.SetNode(node);
               }
             }),
      pods_(api, kube::Pods(), {.keep = Slim, .name = "all-pods"},
            [this](const Json& pod, bool deleted) {
              const sync::MutexLock lock(&mu_);
              if (deleted) {
                capacity_.RemovePod(runtime::MetaField(pod, "uid"));
              } else {
                capacity_.SetPod(pod);
              }
            }) {}

void CapacityCache::Start() {
  nodes_.Start();
  pods_.Start();
}

void CapacityCache::Stop() {
  nodes_.Stop();
  pods_.Stop();
}

scheduler::GangFit CapacityCache::FitTogether(const std::vector<Json>& pods) const {
  scheduler::Capacity now;
  {
    const sync::MutexLock lock(&mu_);
    now = capacity_;
  }
  return scheduler::FitTogether(std::move(now), pods);
}

void CapacityCache::Observe(const Json& pod) {
  const sync::MutexLock lock(&mu_);  // around both: what the cache takes last counts
  if (pods_.Observe(pod)) capacity_.SetPod(Slim(pod));
}

}  // namespace ringmaster::controllers
