#include "operator/local/scheduler.h"

#include "operator/kube/resources.h"
#include "operator/scheduler/capacity.h"

namespace ringmaster::local {
namespace {

bool Waits(const Json& pod) {
  const Json& spec = pod["spec"];
  return spec.value("nodeName", "").empty() &&
         spec.value("schedulingGates", Json::array()).empty() &&
         !pod["metadata"].contains("deletionTimestamp") &&
         spec.value("schedulerName", "default-scheduler") == "default-scheduler";
}

}  // namespace

Scheduler::Scheduler(std::shared_ptr<Store> store) : store_(std::move(store)) {}
Scheduler::~Scheduler() { Stop(); }

void Scheduler::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void Scheduler::Stop() {
  thread_.request_stop();
  store_->WakeAll();
  if (thread_.joinable()) thread_.join();
}

void Scheduler::Run(std::stop_token stop) {
  pthread_setname_np(pthread_self(), "scheduler");
  // One cursor over pods is enough to sleep on: nodes hardly change, and a wait is short.
  uint64_t seen = 0;
  while (!stop.stop_requested()) {
    auto cursor = store_->Watch(kube::Pods(), "", {});
    while (cursor && !stop.stop_requested()) {
      if (store_->version() != seen) {
        seen = store_->version();
        Pass();
      }
      if (!cursor->Next(std::chrono::milliseconds(100))) break;
    }
  }
}

void Scheduler::Pass() {
  auto nodes = store_->List(kube::Nodes(), "", {});
  auto pods = store_->List(kube::Pods(), "", {});
  if (!nodes || !pods) return;
  scheduler::Capacity capacity;
  for (const Json& node : nodes->items) capacity.SetNode(node);
  for (const Json& pod : pods->items) capacity.SetPod(pod);
  for (const Json& pod : pods->items) {
    if (!Waits(pod)) continue;
    const scheduler::ShapePtr shape = capacity.shapes().Of(pod);
    const auto node = capacity.nodes().Place(*shape);
    if (!node) {
      Explain(pod, node.error());
    } else if (store_->Bind(pod["metadata"]["namespace"], pod["metadata"]["name"], *node)) {
      capacity.Hold(pod, shape, *node, "");
    }
  }
}

void Scheduler::Explain(const Json& pod, const std::string& why) {
  Json changed = pod;
  Json conditions = Json::array();
  for (const Json& c : changed["status"].value("conditions", Json::array())) {
    if (c.value("type", "") != "PodScheduled") {
      conditions.push_back(c);
    } else if (c.value("message", "") == why) {
      return;
    }
  }
  conditions.push_back({{"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "Unschedulable"},
                        {"message", why},
                        {"lastTransitionTime", pod["metadata"]["creationTimestamp"]}});
  changed["status"]["conditions"] = std::move(conditions);
  (void)store_->Update(kube::Pods(), pod["metadata"]["namespace"], pod["metadata"]["name"], changed,
                       "status");
}

}  // namespace ringmaster::local
