// What the operator knows of nodes: which of them are about to end, and whether a node proves that
// a pod on it is dead (docs/proof-of-death.md).
//
// Thread rule: Start and Stop from one thread, Observe from any. The watch's thread calls
// `changed`, without a lock.
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
  std::vector<std::string> disruption_taints;  // keys of taints that announce the end of a node
  // Only the cloud removes Node objects, after their instances: a missing node then proves death.
  bool trust_node_deletion = false;
};

class NodeWatcher {
 public:
  // `changed` is called when facts about a node have changed that matter to jobs. `seen`, if set,
  // is called with every change of a node, heartbeats included, after SlimNode.
  NodeWatcher(std::shared_ptr<kube::KubeApi> api, NodeWatcherOptions options,
              std::function<void(const std::string& node)> changed,
              runtime::Informer::Handler seen = nullptr);

  // Returns when the nodes are known, or after a while without them. Jobs then run all the same,
  // but cordons and taints give no early warning, and only the kubelet can prove a death.
  void Start();
  void Stop() { nodes_.Stop(); }
  const runtime::Informer* cache() const { return &nodes_; }

  // Returns the nodes that matter to `pods`, and those whose end is announced. Sets proof and
  // proven_dead of the pods. `topology_label` is named by their job; empty: none.
  std::vector<planner::NodeFacts> Observe(std::vector<planner::PodFacts>* pods,
                                          const std::string& topology_label = "");

 private:
  void OnNode(const kube::Json& node, bool deleted);
  void SetEnding(const std::string& node, bool ends);
  std::set<std::string> NamesToObserve(const std::vector<planner::PodFacts>& pods);
  // What one look has read from the API server.
  struct Read {
    std::string topology_label;
    std::set<std::string> nodes;        // each once: all of its pods are older than that read
    std::map<std::string, bool> exist;  // by node
  };
  // `nodes` are in the order of their names, and stay so.
  void ProveBy(std::vector<planner::NodeFacts>* nodes, Read* read, planner::PodFacts* pod);
  runtime::ObjectPtr Listed(const std::string& name);
  bool InstanceIsGone(const planner::PodFacts& pod, Read* read);

  const std::shared_ptr<kube::KubeApi> api_;
  const NodeWatcherOptions options_;
  const std::function<void(const std::string&)> changed_;
  const runtime::Informer::Handler each_;
  bool readable_ = false;                           // constant after Start
  std::map<std::string, planner::NodeFacts> seen_;  // by name; used only by the watch's thread
  sync::Mutex mu_;
  std::set<std::string> ending_ GUARDED_BY(mu_);  // nodes whose end is announced
  runtime::Informer nodes_;                       // last member: its thread uses the others
};

}  // namespace ringmaster::controllers
