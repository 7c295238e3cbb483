#include "operator/app/operator_app.h"

#include <fmt/format.h>

#include "common/logging/log.h"
#include "common/sync/mutex.h"
#include "operator/app/operator_identity.h"
#include "operator/app/operator_link.h"
#include "operator/app/operator_metrics.h"
#include "operator/controllers/certificate_authority.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/pod_groups.h"
#include "operator/controllers/served_version.h"

namespace ringmaster::app {
namespace {

// Far beyond the duration of anything that makes progress: a call to the API ends after 30 s, a
// watch after five minutes.
constexpr std::chrono::minutes kHungReconcile{10};
constexpr std::chrono::minutes kHungWatch{15};

class App final : public OperatorApp {
 public:
  App(std::shared_ptr<kube::KubeApi> api, const OperatorOptions& options)
      : api_(std::move(api)),
        options_(options),
        registry_(options.metrics),
        records_(api_, options.metrics) {}
  ~App() override { Stop(); }

  kube::Result<void> Run(std::stop_token stop) override {
    controllers::JobControllerOptions controller;
    const bool local = IsLocal(options_);
    if (!local) {
      controller.child_objects.emplace();
      controller.child_objects->network_policy = {options_.network_policy,
                                                  options_.metrics_namespace};
      controller.child_objects->ring_key = options_.ring_key;
      controller.pod.sidecar_resources = options_.sidecar_resources;
      FindPodGroups(&*controller.child_objects, stop);
    }
    std::optional<tls::Files> tls;
    if (!local && options_.tls) {
      if (auto ready = MakeIdentity(&controller.child_objects->authority); !ready) return ready;
      tls = identity_->files();
    }
    // The service starts first, because the pods that the controller creates contain its address.
    auto link = OperatorLinkServer::Start(options_.listen, &registry_, &records_, tls);
    if (!link) return tl::unexpected(link.error());
    link_ = std::move(*link);
    controller.pod.cluster = !local;
    controller.pod.tls = tls.has_value();
    controller.pod.host_network = options_.host_network;
    controller.pod.image_pull_policy = options_.sidecar_image_pull_policy;
    controller.pod.sidecar_image = options_.sidecar_image;
    controller.pod.sidecar_target =
        options_.sidecar_target.empty() ? link_->target() : options_.sidecar_target;
    controller.pod.log_format = options_.sidecar_log_format;
    controller.pod.ring_key_file = options_.ring_key_file;
    controller.watch_namespaces = options_.watch_namespaces;
    controller.instance = options_.instance;
    controller.workers = options_.workers;
    controller.trust_node_deletion = options_.trust_node_deletion;
    if (!options_.disruption_taints.empty()) {
      controller.disruption_taints = options_.disruption_taints;
    }
    controller.gang_admission = controller.pod.counted = options_.gang_admission;
    controller.kueue = options_.kueue;
    controller.node_calls = options_.node_calls;
    controller.nodes_within = options_.nodes_within;
    controller.provisioning = FindProvisioningRequests(stop);
    controller.pod.shield = options_.node_calls.calls;
    controller.sync_timeout = options_.sync_timeout;
    controller.metrics = options_.metrics;
    {
      const sync::MutexLock lock(&mu_);
      controller_ =
          std::make_unique<controllers::JobController>(api_, &registry_, &records_, controller);
    }
    auto started = controller_->Start(std::move(stop));
    const sync::MutexLock lock(&mu_);
    running_ = started.has_value();
    return started;
  }

  void Stop() override {
    {
      const sync::MutexLock lock(&mu_);
      running_ = false;
    }
    if (controller_ != nullptr) controller_->Stop();
    if (link_ != nullptr) link_->Stop();
  }

  void Dismiss() override { registry_.DismissAll(); }

  std::vector<std::string> NotReady() const override {
    const sync::MutexLock lock(&mu_);
    std::vector<std::string> missing;
    if (controller_ == nullptr) return {"the controllers have not started"};
    for (const auto& cache : controller_->state().caches) {
      if (cache.synced) continue;
      missing.push_back(fmt::format("the cache of {} is not filled{}", cache.resource,
                                    cache.error.empty() ? "" : ": " + cache.error));
    }
    if (missing.empty() && !running_) missing.push_back("the controllers don't run");
    return missing;
  }

  std::vector<std::string> NotAlive() const override {
    const sync::MutexLock lock(&mu_);
    std::vector<std::string> hung;
    if (controller_ == nullptr || !running_) return hung;
    const auto now = std::chrono::steady_clock::now();
    const auto state = controller_->state();
    if (state.queue.longest_running > kHungReconcile) {
      hung.push_back(fmt::format("job {} is being reconciled for {:.0f} s", state.queue.longest_key,
                                 state.queue.longest_running.count()));
    }
    for (const auto& cache : state.caches) {
      if (now - cache.last_turn < kHungWatch) continue;
      hung.push_back(fmt::format("the watch of {} hangs", cache.resource));
    }
    return hung;
  }

  OperatorSample Sample() const override {
    OperatorSample sample;
    sample.sidecars = registry_.connected();
    const sync::MutexLock lock(&mu_);
    sample.leading = running_;
    if (controller_ == nullptr) return sample;
    sample.jobs = controller_->Jobs();
    sample.pods = controller_->Pods();
    sample.controller = controller_->state();
    return sample;
  }

 private:
  void FindPodGroups(controllers::ChildObjectOptions* objects, const std::stop_token& stop) {
    if (!options_.pod_groups) return;
    objects->pod_groups = controllers::ServedPodGroups(*api_, options_.watch_namespaces, stop);
    logging::Info("gangs are kept together by={}",
                  objects->pod_groups       ? "PodGroup of " + objects->pod_groups->ApiVersion()
                  : options_.gang_admission ? "our own admission"
                                            : "nobody");
  }

  controllers::ProvisioningOptions FindProvisioningRequests(const std::stop_token& stop) {
    controllers::ProvisioningOptions found{.within = options_.nodes_within};
    if (options_.provisioning_class.empty() || !options_.gang_admission) return found;
    found.class_name = options_.provisioning_class;
    found.version = controllers::ServedVersion(*api_, controllers::ProvisioningRequestVersions(),
                                               options_.watch_namespaces, stop);
    logging::Info("nodes are asked for by={}",
                  found.version ? "ProvisioningRequest of " + found.version->ApiVersion()
                                : "pods that stand Pending");
    return found;
  }

  kube::Result<void> MakeIdentity(std::optional<tls::KeyPair>* authority) {
    auto loaded = controllers::LoadCertificateAuthority(api_.get(), options_.operator_namespace,
                                                        std::chrono::system_clock::now());
    if (!loaded) return tl::unexpected(loaded.error());
    auto identity = OperatorIdentity::Create(*loaded);
    if (!identity) return tl::unexpected(identity.error());
    identity_ = std::move(*identity);
    *authority = std::move(*loaded);
    return {};
  }

  const std::shared_ptr<kube::KubeApi> api_;
  const OperatorOptions options_;
  controllers::SidecarRegistry registry_;
  controllers::QuorumRecordStore records_;
  std::unique_ptr<OperatorIdentity> identity_;
  std::unique_ptr<OperatorLinkServer> link_;
  mutable sync::Mutex mu_;
  bool running_ GUARDED_BY(mu_) = false;
  std::unique_ptr<controllers::JobController> controller_;  // set once, under mu_
};

}  // namespace

std::unique_ptr<OperatorApp> OperatorApp::Create(std::shared_ptr<kube::KubeApi> api,
                                                 const OperatorOptions& options) {
  return std::make_unique<App>(std::move(api), options);
}

bool IsLocal(const OperatorOptions& options) {
  return IsLocalAddress(options.sidecar_target.empty() ? options.listen : options.sidecar_target);
}

kube::Result<std::unique_ptr<OperatorApp>> OperatorApp::Start(std::shared_ptr<kube::KubeApi> api,
                                                              const OperatorOptions& options) {
  auto app = Create(std::move(api), options);
  if (auto running = app->Run({}); !running) return tl::unexpected(running.error());
  return app;
}

}  // namespace ringmaster::app
