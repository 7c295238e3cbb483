#include "operator/local/node_monitor.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "common/sync/pause.h"
#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

constexpr std::chrono::seconds kLookEvery{2};
constexpr std::chrono::seconds kSilence{20};  // four heartbeats of a node (node_process.cc)

std::string HeartbeatOf(const Json& node) {
  for (const Json& condition : fields::ListAt(node, "/status/conditions")) {
    if (fields::Text(condition, "type") == "Ready")
      return fields::Text(condition, "lastHeartbeatTime");
  }
  return "";
}

bool IsSilentTaint(const Json& taint) { return fields::Text(taint, "key") == kSilentTaint; }

}  // namespace

NodeMonitor::NodeMonitor(std::shared_ptr<Store> store) : store_(std::move(store)) {}
NodeMonitor::~NodeMonitor() { Stop(); }

void NodeMonitor::Start() {
  thread_ = std::jthread([this](std::stop_token stop) {
    pthread_setname_np(pthread_self(), "node-monitor");
    while (!stop.stop_requested()) {
      Look(std::chrono::steady_clock::now());
      sync::Pause(stop, kLookEvery);
    }
  });
}

void NodeMonitor::Stop() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void NodeMonitor::Look(TimePoint now) {
  const auto nodes = store_->List(kube::Nodes(), "", {});
  if (!nodes) return;
  for (const Json& node : nodes->items) {
    const std::string heartbeat = HeartbeatOf(node);
    const auto [it, first] = heard_.try_emplace(node["metadata"]["name"], Heard{heartbeat, now});
    if (it->second.heartbeat != heartbeat) it->second = {heartbeat, now};
    const Json& taints = fields::ListAt(node, "/spec/taints");
    const bool marked = std::any_of(taints.begin(), taints.end(), IsSilentTaint);
    const bool silent = now - it->second.at >= kSilence;
    if (silent != marked) Mark(node, silent);
  }
}

// A conflict: the next look sees what the other has written.
void NodeMonitor::Mark(Json node, bool silent) {
  Json taints = Json::array();
  for (const Json& taint : fields::ListAt(node, "/spec/taints")) {
    if (!IsSilentTaint(taint)) taints.push_back(taint);
  }
  if (silent) taints.push_back({{"key", kSilentTaint}, {"effect", "NoSchedule"}});
  node["spec"]["taints"] = std::move(taints);
  (void)store_->Update(kube::Nodes(), "", node["metadata"]["name"], node, "");
}

}  // namespace ringmaster::local
