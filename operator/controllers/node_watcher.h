// What the operator knows of nodes: which ones are announced to end, and whether a node proves that
// a pod on it is dead (docs/proof-of-death.md).
//
// Thread rule: Start and Stop from one thread, Observe from any. `changed` is called from the
// watch's thread, without a lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

struct NodeWatcherOptions {
  std::vector<std::string> disruption_taints;  // keys that announce the end of a node
  // Node objects are removed by the cloud alone, after their instances: a node that is gone is
  // proof then.
  bool trust_node_deletion = false;
};

class NodeWatcher {
 public:
  // `changed`: what matters of this node is not what it was. `seen`, where there is one: hears of
  // every node as SlimNode leaves it, also of heartbeats.
  NodeWatcher(std::shared_ptr<kube::KubeApi> api, NodeWatcherOptions options,
              std::function<void(const std::string& node)> changed,
              runtime::Informer::Handler seen = nullptr);

  // Returns once the nodes are known, or after a while without them: jobs run all the same then,
  // but cordons and taints give no early warning, and only the kubelet can prove a death.
  void Start();
  void Stop() { nodes_.Stop(); }
  const runtime::Informer* cache() const { return &nodes_; }

  // The nodes that matter to `pods`, and those whose end is announced. Sets proof and proven_dead
  // of the pods. `topology_label`: of their job; empty: it names none.
  std::vector<planner::NodeFacts> Observe(std::vector<planner::PodFacts>* pods,
                                          const std::string& topology_label = "");

 private:
  void OnNode(const kube::Json& node, bool deleted);
  void SetEnding(const std::string& node, bool ends);
  std::set<std::string> NamesToObserve(const std::vector<planner::PodFacts>& pods);
  void ProveBy(std::vector<planner::NodeFacts>* nodes, planner::PodFacts* pod);
  runtime::ObjectPtr Listed(const std::string& name);
  bool InstanceIsGone(const planner::PodFacts& pod);

  const std::shared_ptr<kube::KubeApi> api_;
  const NodeWatcherOptions options_;
  const std::function<void(const std::string&)> changed_;
  const runtime::Informer::Handler each_;
  bool readable_ = false;                           // constant after Start
  std::map<std::string, planner::NodeFacts> seen_;  // by name; the watch's thread only
  sync::Mutex mu_;
  std::set<std::string> ending_ GUARDED_BY(mu_);  // nodes of which an end is announced
  runtime::Informer nodes_;                       // last: its thread uses what is above
};

}  // namespace ringmaster::controllers
