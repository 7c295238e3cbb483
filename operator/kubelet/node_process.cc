#include "operator/kubelet/node_process.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"
#include "operator/kube/errors.h"
#include "operator/kube/random_hex.h"
#include "operator/kubelet/lost_pods.h"
#include "operator/kubelet/node_object.h"

namespace ringmaster::kubelet {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBeat{5000};
constexpr std::chrono::milliseconds kLongestBackoff{2000};
constexpr std::chrono::milliseconds kLastWords{3000};
// Without pods there is nothing to keep for a launching machine that may come back.
constexpr std::chrono::seconds kAbandonWithoutPods{60};
constexpr char kMachineId[] = "/status/nodeInfo/machineID";

// The machine's own, whatever it is called; empty where it has none.
std::string MachineId() {
  std::ifstream file("/etc/machine-id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace

NodeProcess::NodeProcess(const NodeOptions& options, std::shared_ptr<kube::KubeApi> api)
    : options_(options), api_(std::move(api)), mark_("RINGMASTER_RUN=" + kube::RandomHex(8)) {}

NodeProcess::~NodeProcess() {
  if (nodes_) nodes_->Stop();
}

kube::Result<std::unique_ptr<NodeProcess>> NodeProcess::Start(const NodeOptions& options,
                                                              std::shared_ptr<kube::KubeApi> api) {
  auto node = std::unique_ptr<NodeProcess>(new NodeProcess(options, std::move(api)));
  const fs::path dir = fs::absolute(options.run_dir);
  // Before any other thread, so that it holds nothing of ours.
  auto watchdog = ParentDeathWatchdog::Start(node->mark_, dir);
  if (!watchdog) return tl::unexpected(kube::Unavailable("node", watchdog.error()));
  node->watchdog_ = std::move(*watchdog);
  if (auto registered = node->Register(); !registered) return tl::unexpected(registered.error());
  RunnerOptions runner;
  runner.run_dir = dir;
  runner.bin_dir = options.bin_dir;
  runner.run_mark = node->mark_;
  runner.node = options.name;
  runner.address = options.address;
  runner.machine_env = options.environment;
  node->kubelet_ = std::make_unique<Kubelet>(runner, node->api_);
  node->kubelet_->Start();
  node->shipper_ = std::make_unique<LogShipper>(
      node->api_, [kubelet = node->kubelet_.get()] { return kubelet->Logs(); });
  node->shipper_->Start();
  node->nodes_ = std::make_unique<runtime::Informer>(
      node->api_, kube::Nodes(), runtime::InformerOptions{.max_relist_backoff = kLongestBackoff},
      [node = node.get()](const kube::Json& object, bool deleted) {
        node->OnNode(object, deleted);
      });
  node->nodes_->Start();
  return node;
}

kube::Result<void> NodeProcess::Register() {
  kube::Json node =
      MakeNode({.name = options_.name, .address = options_.address, .pods = options_.pods});
  node["metadata"]["finalizers"] = {api::kNodeFinalizer};
  if (const std::string id = MachineId(); !id.empty()) node["status"]["nodeInfo"]["machineID"] = id;
  if (options_.again) return RegisterAgain(node);
  auto made = api_->Create(kube::Nodes(), "", node);
  if (!made) return tl::unexpected(made.error());
  return {};
}

// What others have written of the node stays: that it is cordoned, its labels.
kube::Result<void> NodeProcess::RegisterAgain(const kube::Json& node) {
  const auto live = api_->Get(kube::Nodes(), "", options_.name);
  if (!live && live.error().code != kube::ErrorCode::kNotFound) return tl::unexpected(live.error());
  if (live && fields::At(*live, "/metadata").contains("deletionTimestamp"))
    return tl::unexpected(kube::Unavailable("node", "the run lets go of this node"));
  // It would know nothing of what still runs on the first.
  if (live && fields::TextAt(*live, kMachineId) != fields::TextAt(node, kMachineId))
    return tl::unexpected(kube::Unavailable("node", "this is another machine than before"));
  // Before the node is heard of again, so that no new pod is taken for one that was lost.
  if (auto ended = EndLostPods(api_.get(), options_.name); !ended) return ended;
  auto written = live ? api_->Patch(kube::Nodes(), "", options_.name, {{"status", node["status"]}},
                                    {.subresource = "status"})
                      : api_->Create(kube::Nodes(), "", node);
  if (!written) return tl::unexpected(written.error());
  return {};
}

void NodeProcess::OnNode(const kube::Json& node, bool deleted) {
  if (node["metadata"].value("name", "") != options_.name) return;
  if (!deleted && !node["metadata"].contains("deletionTimestamp")) return;
  const sync::MutexLock lock(&mu_);
  released_ = true;
  changed_.NotifyAll();
}

void NodeProcess::RequestStop() {
  const sync::MutexLock lock(&mu_);
  stopped_ = true;
  changed_.NotifyAll();
}

bool NodeProcess::Beat() {
  const std::string now = api::FormatTime(std::chrono::system_clock::now());
  const kube::Json ready = {{"type", "Ready"},
                            {"status", "True"},
                            {"reason", "KubeletReady"},
                            {"lastHeartbeatTime", now}};
  const auto told = api_->Patch(kube::Nodes(), "", options_.name,
                                {{"status", {{"conditions", kube::Json::array({ready})}}}},
                                {.subresource = "status"});
  if (!told && told.error().code == kube::ErrorCode::kNotFound) {
    const sync::MutexLock lock(&mu_);
    released_ = true;
  }
  return told.has_value() || told.error().code != kube::ErrorCode::kUnavailable;
}

bool NodeProcess::IsAbandoned(Clock::time_point last_contact) {
  const auto away = Clock::now() - last_contact;
  if (away >= options_.abandon_after) return true;
  return away >= std::min(options_.abandon_after, kAbandonWithoutPods) && !kubelet_->IsBusy();
}

NodeEnd NodeProcess::AwaitEnd() {
  auto last_contact = Clock::now();
  while (true) {
    if (Beat()) last_contact = Clock::now();
    if (IsAbandoned(last_contact)) return NodeEnd::kAbandoned;
    const auto next = Clock::now() + std::min<Clock::duration>(kBeat, options_.abandon_after / 2);
    const sync::MutexLock lock(&mu_);
    while (!released_ && !stopped_ && changed_.WaitUntil(&mu_, next)) {
    }
    if (released_) return NodeEnd::kReleased;
    if (stopped_) return NodeEnd::kSignal;
  }
}

NodeResult NodeProcess::Await(std::chrono::milliseconds grace) {
  const NodeEnd end = AwaitEnd();
  nodes_->Stop();
  kubelet_->Stop(grace);
  const bool logs_sent =
      shipper_->Stop(end == NodeEnd::kAbandoned ? std::chrono::milliseconds(0) : kLastWords);
  if (end != NodeEnd::kAbandoned) {
    (void)api_->Patch(kube::Nodes(), "", options_.name, {{"metadata", {{"finalizers", nullptr}}}},
                      {});
    if (end == NodeEnd::kSignal) (void)api_->Delete(kube::Nodes(), "", options_.name, {});
  }
  watchdog_->Dismiss();
  return {end, logs_sent};
}

}  // namespace ringmaster::kubelet
