// What the controller sees of nodes: early warning, and proof of death.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>

#include "logging/log.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/node_facts.h"
#include "operator/planner/proof.h"

namespace ringmaster::controllers {
namespace {

// Nodes are a help, nothing waits for them for long.
constexpr std::chrono::seconds kNodesSync{10};

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
  if (deleted) {
    seen_.erase(seen);
  } else {
    seen->second = std::move(facts);
  }
  std::set<std::string> keys;
  for (const auto& pod : pods_.All()) {
    if (pod->value("/spec/nodeName"_json_pointer, "") == name) keys.insert(JobKeyOf(*pod));
  }
  for (const std::string& key : keys) queue_.Add(key);
}

void JobController::ObserveNodes(planner::Snapshot* snapshot) {
  for (planner::PodFacts& pod : snapshot->pods) {
    if (pod.node.empty()) continue;
    auto object = nodes_.Get("", pod.node);
    planner::NodeFacts node;
    if (object != nullptr) node = ReadNode(*object);
    // The cache may be older than the pod: its node may have come back before the pod was there.
    if (!pod.proven_dead && planner::ProofOfDeath(pod, {.node = &node})) {
      object = LiveNode(pod.node);
      node = object != nullptr ? ReadNode(*object) : planner::NodeFacts();
    }
    Prove(&pod, {.node = object != nullptr ? &node : nullptr,
                 .instance_gone = object == nullptr && InstanceIsGone(pod)});
    const bool known = std::any_of(snapshot->nodes.begin(), snapshot->nodes.end(),
                                   [&](const auto& other) { return other.name == node.name; });
    if (object != nullptr && !known) snapshot->nodes.push_back(std::move(node));
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
