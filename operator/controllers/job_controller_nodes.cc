// What the controller sees of nodes: early warning, and proof of death.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "common/logging/log.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/lenient_json.h"
#include "operator/controllers/node_facts.h"
#include "operator/planner/proof.h"

namespace ringmaster::controllers {
namespace {

// Nodes are a help, nothing waits for them for long.
constexpr std::chrono::seconds kNodesSync{10};

// The pod is there, or was told what is announced of the node (or of one that is called much alike:
// a look too many does no harm).
bool Concerns(const kube::Json& pod, const std::string& node) {
  if (Text(At(pod, "spec"), "nodeName") == node) return true;
  const kube::Json& annotations = At(At(pod, "metadata"), "annotations");
  return Text(annotations, planner::kAnnouncedAnnotation).find(node) != std::string::npos;
}

}  // namespace

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

// Without a look at the nodes jobs run all the same: cordons and taints give no early warning then,
// and only the kubelet can prove a death.
void JobController::StartNodes() {
  const auto probe = api_->ListAll(kube::Nodes(), "", {.field_selector = "metadata.name=-"});
  if (!probe && probe.error().code == ErrorCode::kForbidden) {
    return spdlog::warn("nodes can't be read, so nobody warns of their end error={}",
                        logging::Value(probe.error().message));
  }
  nodes_readable_ = true;
  nodes_.Start();
  if (!nodes_.WaitForSync(kNodesSync)) {
    spdlog::warn("nodes are not known yet error={}", logging::Value(nodes_.LastError()));
  }
}

void JobController::OnNode(const Json& node, bool deleted) {
  // Most changes are heartbeats.
  planner::NodeFacts facts = deleted ? planner::NodeFacts() : ReadNode(node);
  const std::string name = MetaField(node, "name");
  const auto [seen, is_new] = seen_.try_emplace(name);
  if (!is_new && seen->second == facts) return;
  SetEnding(name, planner::WarningOf(facts, options_.disruption_taints).has_value());
  if (deleted) {
    seen_.erase(seen);
  } else {
    seen->second = std::move(facts);
  }
  std::set<std::string> keys;
  for (const auto& pod : pods_.All()) {
    if (Concerns(*pod, name)) keys.insert(JobKeyOf(*pod));
  }
  for (const std::string& key : keys) queue_.Add(key);
}

void JobController::SetEnding(const std::string& node, bool ends) {
  const std::lock_guard lock(ending_mu_);
  if (ends) {
    ending_.insert(node);
  } else {
    ending_.erase(node);
  }
}

// Those whose end is announced, and those that matter to a pod.
std::set<std::string> JobController::NodesToObserve(const std::vector<planner::PodFacts>& pods) {
  std::set<std::string> names;
  {
    const std::lock_guard lock(ending_mu_);
    names = ending_;
  }
  for (const planner::PodFacts& pod : pods) {
    if (!pod.node.empty()) names.insert(pod.node);
    for (const auto& [node, reason] : pod.announced) names.insert(node);
  }
  return names;
}

void JobController::ObserveNodes(planner::Snapshot* snapshot) {
  snapshot->nodes.clear();
  for (const std::string& name : NodesToObserve(snapshot->pods)) {
    if (const auto object = nodes_.Get("", name)) snapshot->nodes.push_back(ReadNode(*object));
  }
  for (planner::PodFacts& pod : snapshot->pods) {
    if (pod.node.empty()) continue;
    auto node = std::find_if(snapshot->nodes.begin(), snapshot->nodes.end(),
                             [&](const auto& other) { return other.name == pod.node; });
    // The cache may be older than the pod: its node may have come back before the pod was there.
    if (node != snapshot->nodes.end() && !pod.proven_dead &&
        planner::ProofOfDeath(pod, {.node = &*node})) {
      const auto live = LiveNode(pod.node);
      if (live != nullptr) {
        *node = ReadNode(*live);
      } else {
        snapshot->nodes.erase(node);
        node = snapshot->nodes.end();
      }
    }
    const bool known = node != snapshot->nodes.end();
    Prove(&pod, {.node = known ? &*node : nullptr, .instance_gone = !known && InstanceIsGone(pod)});
  }
}

// As the API server has it now; null: it has none, or can't be asked. By a list, as the right to
// list nodes is there.
runtime::ObjectPtr JobController::LiveNode(const std::string& name) {
  const auto listed = api_->ListAll(kube::Nodes(), "", {.field_selector = "metadata.name=" + name});
  if (!listed || listed->items.size() != 1) return nullptr;
  return std::make_shared<const Json>(listed->items.front());
}

bool JobController::InstanceIsGone(const planner::PodFacts& pod) {
  if (!options_.trust_node_deletion || !nodes_readable_ || pod.proven_dead || !pod.accepted) {
    return false;
  }
  // The cache may be older than the node.
  const auto live = api_->Get(kube::Nodes(), "", pod.node);
  return !live && live.error().code == ErrorCode::kNotFound;
}

}  // namespace ringmaster::controllers
