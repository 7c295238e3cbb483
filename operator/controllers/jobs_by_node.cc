#include "operator/controllers/jobs_by_node.h"

#include <utility>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"
#include "operator/runtime/object_cache.h"

namespace ringmaster::controllers {

using kube::Json;

void JobsByNode::Set(const Json& pod) {
  Pod now{.job = JobKeyOf(pod), .nodes = {}};
  if (std::string node = fields::TextAt(pod, "/spec/nodeName"); !node.empty()) {
    now.nodes.insert(std::move(node));
  }
  const Json& annotations = fields::At(pod, "/metadata/annotations");
  const std::string announced = fields::Text(annotations, api::kAnnouncedAnnotation);
  for (const auto& [node, reason] : ReadAnnounced(announced)) now.nodes.insert(node);
  const std::string uid = runtime::MetaField(pod, "uid");
  const sync::MutexLock lock(&mu_);
  if (const auto known = pods_.find(uid); known != pods_.end() && known->second == now) return;
  Forget(uid);
  if (now.nodes.empty()) return;
  for (const std::string& node : now.nodes) ++jobs_[node][now.job];
  pods_.emplace(uid, std::move(now));
}

void JobsByNode::Remove(const Json& pod) {
  const sync::MutexLock lock(&mu_);
  Forget(runtime::MetaField(pod, "uid"));
}

std::set<std::string> JobsByNode::On(const std::string& node) const {
  const sync::MutexLock lock(&mu_);
  std::set<std::string> keys;
  const auto jobs = jobs_.find(node);
  if (jobs == jobs_.end()) return keys;
  for (const auto& [job, pods] : jobs->second) keys.insert(job);
  return keys;
}

void JobsByNode::Forget(const std::string& uid) {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return;
  for (const std::string& node : pod->second.nodes) {
    const auto jobs = jobs_.find(node);
    if (--jobs->second[pod->second.job] == 0) jobs->second.erase(pod->second.job);
    if (jobs->second.empty()) jobs_.erase(jobs);
  }
  pods_.erase(pod);
}

}  // namespace ringmaster::controllers
