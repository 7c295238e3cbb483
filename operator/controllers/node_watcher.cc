#include "operator/controllers/node_watcher.h"

#include <algorithm>
#include <utility>

#include "common/logging/log.h"
#include "operator/controllers/node_facts.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/slim_objects.h"
#include "operator/planner/disruption.h"

namespace ringmaster::controllers {
namespace {

// Facts about nodes are helpful but not necessary, so the wait for them is short.
constexpr std::chrono::seconds kNodesSync{10};

constexpr int kHttpForbidden = 403;

}  // namespace

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

NodeWatcher::NodeWatcher(std::shared_ptr<kube::KubeApi> api, NodeWatcherOptions options,
                         std::function<void(const std::string&)> changed,
                         runtime::Informer::Handler seen)
    : api_(std::move(api)),
      options_(std::move(options)),
      changed_(std::move(changed)),
      each_(std::move(seen)),
      nodes_(api_, kube::Nodes(), {.keep = SlimNode, .unread = UnreadOfNodes()},
             [this](const Json& object, bool deleted) { OnNode(object, deleted); }) {}

void NodeWatcher::Start() {
  const auto probe = api_->ListAll(kube::Nodes(), "", {.field_selector = "metadata.name=-"});
  // A token that is refused (401) or unreadable says nothing about the operator's rights: the watch
  // retries, and the next token may work.
  if (!probe && probe.error().http_status == kHttpForbidden) {
    return logging::Warn("nodes not readable, no early warning of their end error={}",
                         logging::Value(probe.error().message));
  }
  readable_ = true;
  nodes_.Start();
  if (!nodes_.WaitForSync(kNodesSync)) {
    logging::Warn("nodes are not known yet error={}", logging::Value(nodes_.LastError()));
  }
}

void NodeWatcher::OnNode(const Json& node, bool deleted) {
  if (each_) each_(node, deleted);
  // Most changes are heartbeats and don't change these facts.
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
  changed_(name);
}

void NodeWatcher::SetEnding(const std::string& node, bool ends) {
  const sync::MutexLock lock(&mu_);
  if (ends) {
    ending_.insert(node);
  } else {
    ending_.erase(node);
  }
}

std::set<std::string> NodeWatcher::NamesToObserve(const std::vector<planner::PodFacts>& pods) {
  std::set<std::string> names;
  {
    const sync::MutexLock lock(&mu_);
    names = ending_;
  }
  for (const planner::PodFacts& pod : pods) {
    if (!pod.node.empty()) names.insert(pod.node);
    for (const auto& [node, reason] : pod.announced) names.insert(node);
  }
  return names;
}

std::vector<planner::NodeFacts> NodeWatcher::Observe(std::vector<planner::PodFacts>* pods,
                                                     const std::string& topology_label) {
  std::vector<planner::NodeFacts> nodes;
  for (const std::string& name : NamesToObserve(*pods)) {
    if (const auto object = nodes_.Get("", name))
      nodes.push_back(ReadNode(*object, topology_label));
  }
  Read read{.topology_label = topology_label};
  for (planner::PodFacts& pod : *pods) {
    if (!pod.node.empty()) ProveBy(&nodes, &read, &pod);
  }
  return nodes;
}

void NodeWatcher::ProveBy(std::vector<planner::NodeFacts>* nodes, Read* read,
                          planner::PodFacts* pod) {
  auto node = std::lower_bound(
      nodes->begin(), nodes->end(), pod->node,
      [](const planner::NodeFacts& other, const std::string& name) { return other.name < name; });
  if (node != nodes->end() && node->name != pod->node) node = nodes->end();
  // The cache may be older than the pod: the node may have come back before the pod was created.
  if (node != nodes->end() && !pod->proven_dead && planner::ProofOfDeath(*pod, {.node = &*node}) &&
      read->nodes.insert(pod->node).second) {
    const auto listed = Listed(pod->node);
    if (listed != nullptr) {
      *node = ReadNode(*listed, read->topology_label);
    } else {
      nodes->erase(node);
      node = nodes->end();
    }
  }
  const bool known = node != nodes->end();
  Prove(pod,
        {.node = known ? &*node : nullptr, .instance_gone = !known && InstanceIsGone(*pod, read)});
}

// The node as the API server has it now; null if it doesn't exist or can't be read. This uses a
// list, because the operator has the right to list nodes.
runtime::ObjectPtr NodeWatcher::Listed(const std::string& name) {
  const auto listed = api_->ListAll(kube::Nodes(), "", {.field_selector = "metadata.name=" + name});
  if (!listed || listed->items.size() != 1) return nullptr;
  return std::make_shared<const Json>(listed->items.front());
}

bool NodeWatcher::InstanceIsGone(const planner::PodFacts& pod, Read* read) {
  if (!options_.trust_node_deletion || !readable_ || pod.proven_dead || !pod.accepted) {
    return false;
  }
  // The cache may be older than the node.
  const auto [exists, is_new] = read->exist.try_emplace(pod.node, true);
  if (is_new) {
    const auto live = api_->Get(kube::Nodes(), "", pod.node);
    exists->second = live || live.error().code != ErrorCode::kNotFound;
  }
  return !exists->second;
}

}  // namespace ringmaster::controllers
